"""Reads tables without a primary key again: as a whole, at one place of the binlog."""
