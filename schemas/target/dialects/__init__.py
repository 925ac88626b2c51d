"""What each kind of target server can be told, and in which words. Pure."""
