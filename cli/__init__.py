"""The ``shardmerge`` command: runs a pipeline, shows what it does and why, checks its file.

May import everything; nothing imports it.
"""
