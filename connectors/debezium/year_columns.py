"""Tables whose rows stop Debezium by itself on MySQL 8.0 from before 8.0.29. Pure.

Before the rows of a table, such a server's binlog has one bit for each numeric column, which tells
whether the column is unsigned. Debezium's reader counts YEAR as numeric, as newer servers do. Where
that makes it expect more bytes than an old server wrote, it stops at the table, captured or not,
and no setting of Debezium or the server lets it pass. Where a Connect worker has the jar of
``connectors/java``, the reader leaves those bits out, and all tables are read
(``NoTableMetadata.java``).

Source: measured on 8.0.15, which does not count YEAR, with Debezium 3.6.1;
issue 108 of mysql-binlog-connector-java reports 8.0.29 as a server that counts it. The
versions in between are not measured. MySQL 5.7 and MariaDB do not write those bits by default.
"""

from __future__ import annotations

from collections.abc import Iterable

COUNTS_YEARS = (8, 0, 29)
"""The oldest version that is known to count YEAR."""
NUMBERS = frozenset(
    ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double")
)
YEAR = "year"


def is_misread(types: Iterable[str]) -> bool:
    """Whether Debezium by itself stops at rows of a table with columns of these types.

    Args:
        types: Names of the columns' types, in lower case, as ``ColumnType.name``.
    """
    names = list(types)
    numbers = sum(name in NUMBERS for name in names)
    years = names.count(YEAR)
    # Without a number the server writes no bits at all.
    return numbers > 0 and _bytes(numbers + years) > _bytes(numbers)


def may_misread(flavour: str, version: tuple[int, ...]) -> bool:
    """Whether Debezium by itself may stop at such tables of a server of this version."""
    return flavour == "mysql" and version[:2] >= (8, 0) and version < COUNTS_YEARS


def _bytes(bits: int) -> int:
    return (bits + 7) // 8
