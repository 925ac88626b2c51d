"""What shared topics got since the last look, and which shards have rows in it."""
