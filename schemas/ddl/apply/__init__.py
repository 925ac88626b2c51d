"""Applies statements to a table, to all tables of a server, and to tables that depend on them."""
