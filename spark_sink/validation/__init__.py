"""Says what validation compares of shards and target, and when a difference counts. Pure."""
