"""The embedded stack: MySQL, Kafka and Kafka Connect on one machine, without Docker."""
