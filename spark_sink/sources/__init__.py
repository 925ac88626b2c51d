"""Reads the first rows of shards from their servers (MySQL protocol)."""
