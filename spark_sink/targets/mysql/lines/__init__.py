"""Rows as text for a server of the MySQL family: lines for LOAD DATA, and SQL literals."""
