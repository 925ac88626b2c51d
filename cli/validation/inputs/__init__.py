"""What comparisons read of servers and topics."""
