"""From a statement and the schemas known before it to what it does to each shard. Pure."""
