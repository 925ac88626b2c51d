"""Types of columns that Debezium cannot read: its first snapshot ends at their tables. Pure.

For a first snapshot Debezium reads the CREATE TABLE of every table of the captured databases, also
of tables that ``tables`` leaves out, and each retry ends at the same table. A table that is made
later is brought past it by ``connectors.repair``.

Source: measured with Debezium 3.5.0 and MariaDB 10.11 and 11.8, tests/integration/connect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Source

UNREAD: Mapping[str, tuple[str, ...]] = {"mariadb": ("inet4", "inet6")}
"""Flavour of a source → names of types."""
WHY = "Debezium 3.5.0 cannot read the CREATE TABLE, so a first snapshot never ends"
WHAT_TO_DO = (
    "make it a VARCHAR(39), or move the table to a database that the source's databases leave out"
)


def refuse_unread(source: Source, columns: Sequence[str]) -> None:
    """Refuse to begin a first snapshot that cannot end.

    Args:
        source: Which is read.
        columns: Those of such types in its captured databases.

    Raises:
        StackError: There are such columns.
    """
    if columns and source.snapshot_mode != "never":
        raise StackError(
            f"source {source.name}: {', '.join(columns)}: {WHY}", hint=WHAT_TO_DO, code="SM-4407"
        )
