"""The ``shardmerge`` command: the whole line on one machine, the demo, checks of a pipeline file.

May import everything; nothing imports it.
"""
