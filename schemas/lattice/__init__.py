"""How schemas compare and join: the least schema that accepts the rows of every shard. Pure."""
