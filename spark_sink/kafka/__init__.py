"""What the sink reads from Kafka and writes to it."""
