"""Decides: shard DDL in, joined schemas and target DDL out. Pure reducers, carried by Faust."""
