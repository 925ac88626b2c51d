"""``shardmerge load``: how far the loads by the sink are, and one of them again."""
