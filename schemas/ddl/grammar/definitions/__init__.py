"""What stands inside a table's definition: columns, types, defaults, indexes."""
