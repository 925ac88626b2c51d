"""DDL on a MySQL target: executed once, even after a crash at any point."""
