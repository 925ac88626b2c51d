"""What a statement makes of a table, of a server's tables, and of those that depend on them."""
