"""Reads DDL of MySQL and MariaDB into changes, and applies these to schemas. Pure."""
