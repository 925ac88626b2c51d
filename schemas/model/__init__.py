"""What a table is: names, types, columns, binlog positions; and the errors of all parts. Pure."""
