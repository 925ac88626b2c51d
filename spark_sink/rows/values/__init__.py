"""Makes neutral values of what Debezium writes; no kind of target is known here. Pure."""
