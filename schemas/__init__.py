"""What a schema is, how schemas combine, and what the target must become: the shared pure core.

Rooms, from the bottom: ``model`` (values), ``ddl`` (SQL text → changes → schemas), ``records`` (our
topics), ``lattice`` (compare and join), ``target`` (the target's table and its DDL), ``effects``
(rows that are there already), ``pipeline`` (the pipeline file), ``codes`` (error codes).
"""
