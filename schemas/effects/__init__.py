"""What DDL does to the rows that a table has. Pure."""
