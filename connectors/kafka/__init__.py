"""Kafka's topics, read and written without Faust and without Spark."""
