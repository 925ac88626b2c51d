"""What DDL does to the existing rows of a table. Pure."""
