"""``shardmerge drift``: shows, heals or adopts differences between target tables and decisions."""
