"""DDL on a MySQL target: executed once, whatever crashes when."""
