"""Texts of a shard that its connector decodes with another character set than the server's. Pure.

A binlog holds bytes, and Debezium decodes them with the character set that its own parser of DDL
found for the column. Each schema-change record tells which. A wrong one garbles every value that
is not ASCII, and nothing in the rows shows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from shardmerge.connectors.debezium.envelope import TableChange
from shardmerge.schemas.model.charsets import charset_name
from shardmerge.schemas.model.names import ShardId, quote_identifier
from shardmerge.schemas.model.tables import TableSchema

_UTF8 = frozenset({"utf8mb3", "utf8mb4"})
"""Java decodes both as UTF-8."""
_WITHOUT_ASCII = frozenset({"ucs2", "utf16", "utf16le", "utf32", "swe7"})
"""Charsets in which the bytes of ASCII mean something else."""


def misread_texts(schema: TableSchema, described: TableChange) -> Iterator[tuple[str, str, str]]:
    """Each column that is decoded wrongly: its name, the server's charset, Debezium's.

    Args:
        schema: As the server has it.
        described: The same table as Debezium describes it, with the same columns in order.
    """
    for column, image in zip(schema.columns, described.columns, strict=True):
        if column.type.is_string and not _decodes(charset_name(image.charset), column.type.charset):
            yield column.name, column.type.charset, image.charset


def _decodes(debezium: str, charset: str) -> bool:
    if debezium in ("", charset):
        return True
    return {debezium, charset} <= _UTF8 or (charset == "ascii" and debezium not in _WITHOUT_ASCII)


def misread_message(shard: ShardId, columns: list[tuple[str, str, str]]) -> tuple[str, str]:
    """The error and the hint for such columns, of which there is one at least."""
    told = ", ".join(f"{name} is {charset}, not {wrong}" for name, charset, wrong in columns)
    name, charset, _ = columns[0]
    table = f"{quote_identifier(shard.database)}.{quote_identifier(shard.table)}"
    return (
        f"the connector decodes texts of the binlog with a wrong character set: {told}",
        f"tell it the right one by a statement on the source: ALTER TABLE {table} MODIFY "
        f"{quote_identifier(name)} ... CHARACTER SET {charset}, with the rest of the column as it "
        "is; then give the CREATE TABLE by `shardmerge command set-schema`, then `shardmerge "
        "command reread`, which corrects the rows that were read meanwhile; if the primary key has "
        "such a column, `shardmerge rebuild` the target instead",
    )
