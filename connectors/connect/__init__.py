"""Kafka Connect's REST interface, and what a worker must be like."""
