"""What a decision means for rows that the target has: which are read again, and how. Pure."""
