"""``shardmerge validate``: compares shards and target, and repairs differences."""
