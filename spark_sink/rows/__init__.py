"""Rows: from a record's bytes to the last change of each key. Pure."""
