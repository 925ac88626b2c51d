"""``shardmerge rebuild``: fills a new table beside a target, and puts it in the target's place."""
