"""Applies rows to a MySQL target: ranges are read, folded, written and committed."""
