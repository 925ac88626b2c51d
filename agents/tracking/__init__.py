"""Works out what a statement does to each shard, from the schemas known before it. Pure."""
