"""How a connector gets past a statement that Debezium cannot read: what to write where. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from shardmerge.connectors.binlog.binlog_events import Logged, Statement
from shardmerge.connectors.binlog.gtids import MySqlGtids
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.repair.schema_history.canonical import create_text
from shardmerge.connectors.repair.schema_history.history import (
    HistoryRecord,
    drop_text,
    known_tables,
    named_table,
    table_id,
)
from shardmerge.connectors.repair.schema_history.history_tables import (
    HistoryTables,
    SchemaOrError,
    qualified,
)
from shardmerge.schemas.ddl.changes import TableName, TruncateTable
from shardmerge.schemas.ddl.grammar import ServerContext, concerned_tables, parse
from shardmerge.schemas.model.errors import SourceError, UnsupportedDDL
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.tables import TableSchema

_CREATE_TABLE = re.compile(r"CREATE TABLE `(?:[^`]|``)*`")


@dataclass(frozen=True, slots=True)
class TableDescription:
    """The description of one table for Debezium.

    Attributes:
        name: The table.
        text: The CREATE or DROP TABLE.
    """

    name: TableName
    text: str

    @property
    def id(self) -> str:
        """The table's id as Debezium writes it."""
        return table_id(self.name.database, self.name.table)


def described_table(name: TableName, table: SchemaOrError | None) -> TableDescription:
    """The description of a table for Debezium.

    Args:
        name: The table.
        table: Its schema, or why that is not known; None when there is no such table.

    Raises:
        SourceError: The schema is not known.
    """
    if isinstance(table, SourceError):
        raise table
    if table is None:
        return TableDescription(name, drop_text(name.database, name.table))
    return TableDescription(name, create_text(name, table))


def described_by_server(name: TableName, create_table: str | None) -> TableDescription:
    """The description of a table for Debezium, as the server defines the table now.

    Args:
        name: The table.
        create_table: ``SHOW CREATE TABLE`` of it; None when it is gone.

    Raises:
        SourceError: What has the name now is no table.
    """
    if create_table is None:
        return TableDescription(name, drop_text(name.database, name.table))
    qualified = f"{quote_identifier(name.database)}.{quote_identifier(name.table)}"
    # The server can write the name in other letters than a statement.
    begin = _CREATE_TABLE.match(create_table)
    if begin is None:
        raise SourceError(f"{qualified} is no table any more", code="SM-4503")
    return TableDescription(name, f"CREATE TABLE {qualified}{create_table[begin.end() :]}")


def tables_before(
    records: Sequence[HistoryRecord], statement: Statement, context: ServerContext
) -> HistoryTables:
    """The tables as they are right before a statement, by the texts of the schema history.

    Args:
        records: The whole history.
        statement: Of the binlog.
        context: How the source's server reads a statement.
    """
    tables = HistoryTables(context)
    place = (statement.file, statement.first)
    tables.take_history(r for r in records if r.is_of_before(*place))
    return tables


def misread_tables(
    records: Sequence[HistoryRecord], context: ServerContext
) -> list[TableDescription]:
    """The tables whose columns differ between Debezium's description and the statements' texts.

    Args:
        records: Of the schema history, all of which count.
        context: How the source's server reads a statement.
    """
    tables = HistoryTables(context)
    tables.take_history(records)
    found = []
    for number, known in sorted(known_tables(records, lambda _: True).items()):
        name = named_table(number)
        told = tables.table(TableName(*name)) if name is not None else None
        if known.description is None or name is None or not isinstance(told, TableSchema):
            continue
        columns = [column["name"] for column in known.description["table"]["columns"]]
        if columns != [column.name for column in told.columns]:
            found.append(described_table(TableName(*name), told))
    return found


def refuse_truncate(statement: Statement, context: ServerContext) -> None:
    """Refuse a TRUNCATE.

    Raises:
        UnsupportedDDL: It is one. Its record stands among the table's rows, and only Debezium can
            put it there.
    """
    context = replace(context, default_database=statement.database)
    try:
        parsed = parse(statement.sql, context)
    except SourceError:
        return
    if isinstance(parsed, TruncateTable):
        raise UnsupportedDDL(
            "a TRUNCATE is a record among rows, which only Debezium can place", code="SM-4503"
        )


def named_tables(statement: Statement, context: ServerContext) -> tuple[TableName, ...]:
    """The tables that a statement names, those without a database in its default one."""
    context = replace(context, default_database=statement.database)
    names = concerned_tables(statement.sql, context)
    return tuple(qualified(name, statement.database) for name in names)


def refuse_unknown_tables(
    statement: Statement, names: Sequence[TableName], context: ServerContext
) -> None:
    """Refuse a statement that does not parse and whose tables cannot be told.

    Raises:
        UnparsableDDL: It is one.
    """
    if not names:
        parse(statement.sql, replace(context, default_database=statement.database))


def touched_later(
    names: Sequence[TableName], later: Iterable[Logged], context: ServerContext
) -> Mapping[TableName, Statement]:
    """Table → the first statement in ``later`` that makes, changes or removes it."""
    found: dict[TableName, Statement] = {}
    for item in later:
        if isinstance(item, Statement):
            for name in HistoryTables(context).take(item.sql, item.database):
                if name in names:
                    found.setdefault(name, item)
        if len(found) == len(set(names)):
            break
    return found


def leaves_out_by_gtid(offset: SourceOffset, statement: Statement) -> bool:
    """Whether the server can be asked to leave out the statement alone.

    MySQL sends the transactions that a set of GTIDs lacks. So rows from before the statement still
    come. MariaDB sends what is behind a position, as a server without GTIDs does.
    """
    return bool(statement.gtid) and isinstance(offset.read_gtids, MySqlGtids)


def offset_past(
    offset: SourceOffset, statement: Statement, passed: Sequence[Statement]
) -> SourceOffset:
    """The offset with which a connector does not read the statement.

    Args:
        offset: The connector's.
        statement: The one at which it failed.
        passed: Statements behind the offset whose records are delivered.
    """
    if not leaves_out_by_gtid(offset, statement):
        return offset.moved_to(statement.file, statement.end, statement.gtid)
    for item in (*passed, statement):
        offset = offset.with_gtid(item.gtid)
    return offset


def is_of_one(record: HistoryRecord, statements: Sequence[Statement]) -> bool:
    """Whether Debezium wrote this record of its history for one of these statements."""
    place = (record.offset.file, record.offset.pos)
    return not record.snapshot and place in {s.recorded for s in statements}
