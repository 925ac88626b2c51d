"""Debezium's schema history: what a connector knows of its tables. Pure."""
