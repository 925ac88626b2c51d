"""The sink: applies DDL before the rows that depend on it, and rows exactly once in effect."""
