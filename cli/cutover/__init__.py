"""``shardmerge cutover``: moves the applications to a target, and back to its shards."""
