"""Why shards are held or paused: both sides of a conflict, and the ways out. Pure."""
