"""MySQL and its relatives as a target: rows, offsets and journal in one server."""
