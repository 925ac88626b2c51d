"""What a schema is, how schemas combine, and how they are written: the shared pure core.

* Names and places: ``names``, ``routing``, ``position``, ``topics``, ``pipeline``.
* A table's schema: ``types``, ``model``; ``normalize`` gives it the form that the server shows.
* DDL: ``grammar`` reads text into ``changes``, ``apply`` follows them; ``expressions``,
  ``literals``, ``charsets`` know what stands inside.
* The semilattice: ``lattice`` joins and compares; ``target_table`` is the table that a target must
  be; ``diff`` gives the statements that bring it there, ``render`` their text.
* The wire: ``events`` are the records of our topics, ``codec`` their bytes, ``plain`` and
  ``avro/*.avsc`` their forms; ``errors`` is the exception tree.

This module imports nothing, so that a part can be used without the others' dependencies.
"""
