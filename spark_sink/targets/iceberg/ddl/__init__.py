"""Schemas of Iceberg tables: the journal of statements, and what others change by hand."""
