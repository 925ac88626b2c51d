"""What Debezium cannot read of a MariaDB source's tables. Pure.

* Columns of types that it does not know. For a first snapshot it reads the CREATE TABLE of every
  table of the captured databases, also of tables that ``tables`` leaves out; at such a table it
  ends, and so does each retry. A table that is made later is brought past it by
  ``connectors.repair``.
* System-versioned tables: their rows have the times of each version, also where no CREATE TABLE
  shows these columns. The connector stops at such a row ("internal schema size 2, but row size 4").

Source: measured with Debezium 3.5.0 and MariaDB 11.8; tests/integration/connect/test_mariadb.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Source

UNREAD_TYPES: Mapping[str, tuple[str, ...]] = {"mariadb": ("inet4", "inet6")}
"""Flavour of a source → names of types."""
NO_END = "Debezium 3.5.0 cannot read the CREATE TABLE, so a first snapshot never ends"
OTHER_TYPE = (
    "make it a VARCHAR(39), or move the table to a database that the source's databases leave out"
)
VERSIONED = "is system-versioned: Debezium 3.5.0 stops at its rows, which have two columns more"
UNVERSIONED = (
    "leave the table out with the source's tables, or ALTER TABLE … DROP SYSTEM VERSIONING"
)


@dataclass(frozen=True, slots=True)
class Unread:
    """What a source has of that.

    Attributes:
        columns: In captured databases, as ``database.table.column (TYPE)``.
        versioned: Captured tables, as ``database.table``.
    """

    columns: Sequence[str] = ()
    versioned: Sequence[str] = ()


def refuse_unread(source: Source, unread: Unread) -> None:
    """Refuse to make a connector that could not go on.

    Raises:
        StackError: The source has such tables.
    """
    if unread.columns and source.snapshot_mode != "never":
        raise StackError(
            f"source {source.name}: {', '.join(unread.columns)}: {NO_END}",
            hint=OTHER_TYPE,
            code="SM-4407",
        )
    if unread.versioned:
        raise StackError(
            f"source {source.name}: {', '.join(unread.versioned)} {VERSIONED}",
            hint=UNVERSIONED,
            code="SM-4407",
        )
