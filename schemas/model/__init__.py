"""What a table is: names, types, columns, places in a binlog; and the errors of all parts. Pure."""
