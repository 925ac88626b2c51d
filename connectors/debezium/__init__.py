"""What Debezium writes, and what it must be told. Pure."""
