"""Expressions of DEFAULT, CHECK, generated columns and partitions."""
