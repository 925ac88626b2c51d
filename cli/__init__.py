"""The ``shardmerge`` command: a whole pipeline on one machine, the demo, checks of a pipeline file.

May import everything; nothing imports it.
"""
