"""The parts of a table's definition: columns, types, defaults, indexes."""
