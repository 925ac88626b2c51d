"""Why shards are held: both sides of a conflict, and each way out. Pure."""
