"""Rows: from the bytes of records to the last change of each key. Pure."""
