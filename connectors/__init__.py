"""Debezium, Kafka Connect and the embedded stack: how rows and DDL get into Kafka."""
