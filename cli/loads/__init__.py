"""``shardmerge load``: how far the first loads by the sink are."""
