"""Rows into a MySQL target: ranges are read, folded, written and committed."""
