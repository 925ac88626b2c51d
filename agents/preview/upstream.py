"""The records that a source's connector would write for a statement. Pure.

For a RENAME TABLE or DROP TABLE of several tables Debezium writes one record per table. Each record
lists all of these tables by the names that they have afterwards (measured,
``tests/golden/envelope``). A statement that changes rows gives no schema-change record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardmerge.connectors.debezium.envelope import SchemaChangeEvent
from shardmerge.schemas.ddl.changes import DropTable, Irrelevant, RenameTable, TableName
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import UnparsableDDL
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId, quote_identifier
from shardmerge.schemas.model.position import SourcePosition

_OF_ONE_TABLE = re.compile(r"\s*(?:ALTER|CREATE)\s", re.IGNORECASE)
"""Matches statements that always give one record: they need not be parsed."""


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Up to where a source has written.

    Attributes:
        offset: Of its next schema-change record.
        position: Of its last statement.
    """

    offset: int
    position: SourcePosition

    @classmethod
    def behind(cls, offset: int, last: SourcePosition) -> SourcePlace:
        """The place of a source whose statements so far are known.

        Args:
            offset: Of its next record.
            last: Position of its last statement. The statements of a plan get positions in a later
                binlog file that no server has: ``plan.000008:3`` is the third statement.
        """
        number = last.file.rpartition(".")[2]
        following = int(number) + 1 if number.isdigit() else 1
        return cls(offset, SourcePosition(last.epoch, f"plan.{following:06}", 0, 0))

    @classmethod
    def beginning(cls, epoch: int) -> SourcePlace:
        """The place of a source that has written nothing."""
        return cls.behind(0, SourcePosition(epoch, "", 0, 0))

    def after(self, events: Sequence[SchemaChangeEvent]) -> SourcePlace:
        """The place after the records of one statement, of which there is at least one."""
        return SourcePlace(self.offset + len(events), events[-1].position)

    @property
    def next_position(self) -> SourcePosition:
        """The position of its next statement."""
        return replace(self.position, pos=self.position.pos + 1)


def described(shard: ShardId, sql: str, place: SourcePlace) -> SchemaChangeEvent:
    """The record with which a snapshot describes a table.

    Args:
        shard: Gives the table's source and database.
        sql: A CREATE TABLE statement, which begins with these words.
        place: The source's place before the record.
    """
    return _event(shard, sql, place.offset, place.position, snapshot=True)


def changes(
    shard: ShardId, sql: str, place: SourcePlace, context: ServerContext
) -> tuple[SchemaChangeEvent, ...]:
    """The records of one statement; none for a statement that changes only rows or settings.

    Args:
        shard: See ``RolloutStep``.
        sql: The statement.
        place: The source's place before the statement.
        context: How the source's server reads a statement.
    """
    if _OF_ONE_TABLE.match(sql):
        return (_event(shard, sql, place.offset, place.next_position),)
    offset, position = place.offset, place.next_position
    try:
        statement = parse(sql, context)
    except UnparsableDDL:
        return (_event(shard, sql, offset, position),)
    if isinstance(statement, Irrelevant):
        return ()
    return tuple(
        _event(shard, text, offset + number, position, table=table)
        for number, (text, table) in enumerate(_records(statement, sql))
    )


def _records(statement: object, sql: str) -> Iterator[tuple[str, str]]:
    """The text of each record, and the names of the tables that it lists."""
    if isinstance(statement, RenameTable):
        names = ",".join(new.table for _, new in statement.pairs)
        if len(statement.pairs) == 1:
            yield sql, names
            return
        for old, new in statement.pairs:
            yield f"RENAME TABLE {_name(old)} TO {_name(new)}", names
    elif isinstance(statement, DropTable) and len(statement.names) > 1:
        words = "DROP TABLE IF EXISTS" if statement.if_exists else "DROP TABLE"
        for name in statement.names:
            yield f"{words} {_name(name)}", ""
    else:
        yield sql, ""


def _name(name: TableName) -> str:
    table = quote_identifier(name.table)
    return f"{quote_identifier(name.database)}.{table}" if name.database else table


def _event(
    shard: ShardId,
    sql: str,
    offset: int,
    position: SourcePosition,
    *,
    table: str = "",
    snapshot: bool = False,
) -> SchemaChangeEvent:
    return SchemaChangeEvent(
        source=shard.source,
        offset=offset,
        database=shard.database,
        ddl=sql,
        position=position,
        snapshot=snapshot,
        table=table,
        tables=(),
        ts_ms=0,
    )
