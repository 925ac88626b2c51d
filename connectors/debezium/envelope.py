"""Debezium's schema-change records → our events. Pure: bytes in, values out.

The connectors write JSON without or with embedded schemas; Avro is made JSON before it comes here
(``avro_wire``). A schema-change record has the key ``{"databaseName": …}`` and a value of
``source``, ``ts_ms``, ``databaseName``, ``ddl`` and ``tableChanges``.

Source: Debezium documentation, "Schema change topic" of the MySQL connector; what the fields hold
in which case is measured, ``tests/golden/envelope``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.frozen import made_at_once
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition

_NOT_A_SNAPSHOT = (None, "", "false", False, "incremental")
"""Values of ``source.snapshot`` of records that were read from the binlog. A DDL statement that is
executed while an incremental snapshot runs is a change, not a description."""

EPOCH_FIELD = "shardmerge_epoch"
"""The field with the epoch, as text, beside ``op`` and ``source``. Every record of a source
whose epoch is not 0 has it; the connector is told to put it there (``source_config``)."""

UNREAD_FIELD = "shardmerge_unread"
"""In a record that a repair wrote: why the statement's tables are not known after it."""

OWN_VERSION = "shardmerge"
"""What a record that a repair wrote has in place of Debezium's version."""

_CUT_INDEX = re.compile(r"UNIQUE\b", re.IGNORECASE)

_HINT = (
    "the topic must hold what the Debezium MySQL connector writes in the pipeline file's "
    "row_format; check the connector's configuration and who else writes to the topic"
)


@dataclass(frozen=True, slots=True)
class ColumnImage:
    """A column as Debezium's own parser reads it: good for its name, a hint for the rest.

    Attributes:
        charset: With which Debezium decodes the binlog's bytes of a text; "" when it tells none.
    """

    name: str
    type_name: str
    charset: str = ""


@dataclass(frozen=True, slots=True)
class TableChange:
    """What Debezium's own parser made of the statement, for one table.

    Attributes:
        type: ``CREATE``, ``ALTER`` or ``DROP``.
        columns: In table order; empty for a DROP.
        charset: The table's default character set. Where the statement says none, it is what
            Debezium knows of the database, or else the server's; "" when it tells none.
    """

    type: str
    database: str
    table: str
    columns: tuple[ColumnImage, ...]
    charset: str = ""

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in table order."""
        return tuple(column.name for column in self.columns)


@made_at_once
@dataclass(frozen=True, slots=True)
class SchemaChangeEvent:
    """One statement that a source executed, or, in a snapshot, one that describes its state.

    Attributes:
        source: The source's name (the connector's ``topic.prefix``, from the record itself).
        offset: Of the record in the source's schema-change topic.
        database: The database of the table that the statement changes; "" for none. If the
            statement names its tables without a database, this is its default database.
        ddl: As Debezium passes it on, comments around it stripped, but see ``whole_statement``.
        position: Start of the statement's binlog event, or where the snapshot was taken.
        snapshot: Whether it describes a starting state. Such a statement is never executed.
        table: The table that Debezium assigns it to; "" for none (CREATE INDEX, DROP INDEX, …).
        tables: Empty for statements that change no columns.
        ts_ms: When Debezium emitted the record, ms since 1970.
        gtid: Of the statement's transaction, which it has on every server; "" when the source
            gives none.
        unread: Why the statement's tables are not known after it; "" when they are known.
        is_own: Whether a repair of ours wrote the record, and not Debezium.
    """

    source: str
    offset: int
    database: str
    ddl: str
    position: SourcePosition
    snapshot: bool
    table: str
    tables: tuple[TableChange, ...]
    ts_ms: int
    gtid: str = ""
    unread: str = ""
    is_own: bool = False

    def named_shards(self) -> tuple[ShardId, ...]:
        """The tables that the record names outside of its DDL text, in its order."""
        named = [ShardId(self.source, change.database, change.table) for change in self.tables]
        if self.table:
            # Debezium lists the tables of one statement here, separated by commas.
            named += [ShardId(self.source, self.database, t) for t in self.table.split(",")]
        return tuple(dict.fromkeys(named))


def schema_change_event(
    topic: str, offset: int, key: bytes | None, value: bytes | None
) -> SchemaChangeEvent:
    """Read a record of a schema-change topic.

    Raises:
        ContractError: It is not such a record. The message tells topic and offset.
    """
    try:
        return _read(offset, _document(value))
    except (KeyError, TypeError, ValueError) as error:
        detail = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise ContractError(
            f"{topic}@{offset} is not a schema-change record: {detail} "
            f"(key {_excerpt(key)}, value {_excerpt(value)})",
            hint=_HINT,
            code="SM-2107",
        ) from error


def _document(value: bytes | None) -> Mapping[str, Any]:
    if value is None:
        raise ValueError("the value is null")
    return unwrapped(json.loads(value))


def unwrapped(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A record's value without Connect's embedded schema, if it has one.

    Raises:
        TypeError: It is no object, or what is embedded is none.
    """
    if _record(document, "value").keys() != {"schema", "payload"}:
        return document
    return _record(document["payload"], "payload")


def _read(offset: int, document: Mapping[str, Any]) -> SchemaChangeEvent:
    source = _record(document["source"], "source")
    changes = document.get("tableChanges") or []
    if not isinstance(changes, list):
        raise TypeError("'tableChanges' is not a list")
    return SchemaChangeEvent(
        source=_text(source, "name"),
        offset=offset,
        database=_text(document, "databaseName", optional=True),
        ddl=whole_statement(_text(document, "ddl")),
        position=source_position(source, epoch_of(document)),
        # After a restart behind an incremental snapshot Debezium marks what it reads from the
        # binlog as a snapshot's (measured, 3.6.1). A real snapshot's record has no server_id.
        snapshot=source.get("snapshot") not in _NOT_A_SNAPSHOT and not source.get("server_id"),
        table=_text(source, "table", optional=True),
        tables=tuple(_table_change(_record(c, "table change")) for c in changes),
        ts_ms=_integer(document, "ts_ms") if document.get("ts_ms") is not None else 0,
        gtid=_text(source, "gtid", optional=True),
        unread=_text(document, UNREAD_FIELD, optional=True),
        is_own=source.get("version") == OWN_VERSION,
    )


def whole_statement(ddl: str) -> str:
    """A statement's text with the word that Debezium cut off its beginning.

    For CREATE UNIQUE INDEX on a table without a primary key, Debezium's MySQL connector gives only
    the text of its grammar's rule ``createIndex``, which begins behind CREATE. No statement of any
    server begins with UNIQUE, so a text that does is certainly cut. It gives all other statements
    on tables whole; MariaDB's connector gives this one whole, too.

    Source: Debezium 3.6.1, ``CreateUniqueIndexParserListener`` and the grammars; measured.
    """
    return f"CREATE {ddl}" if _CUT_INDEX.match(ddl) else ddl


def source_position(source: Mapping[str, Any], epoch: int) -> SourcePosition:
    """The position in a ``source`` block; the same for schema changes and rows.

    Raises:
        KeyError, TypeError: A field is missing or of another type.
    """
    row = source.get("row") or 0
    return SourcePosition(epoch, _text(source, "file"), _integer(source, "pos"), row)


def epoch_of(document: Mapping[str, Any]) -> int:
    """The epoch that an envelope names; 0 when it names none.

    Raises:
        TypeError: It is no text of digits.
    """
    text = document.get(EPOCH_FIELD)
    if text is None:
        return 0
    if not isinstance(text, str) or not text.isdecimal():
        raise TypeError(f"{EPOCH_FIELD!r} is not a text of digits")
    return int(text)


def _table_change(change: Mapping[str, Any]) -> TableChange:
    database, table = _table_id(_text(change, "id"))
    described = _record(change.get("table") or {}, "table")
    columns = (_record(c, "column") for c in described.get("columns") or [])
    return TableChange(
        type=_text(change, "type"),
        database=database,
        table=table,
        columns=tuple(map(_column_image, columns)),
        charset=_text(described, "defaultCharsetName", optional=True),
    )


def _column_image(column: Mapping[str, Any]) -> ColumnImage:
    charset = _text(column, "charsetName", optional=True)
    return ColumnImage(_text(column, "name"), _text(column, "typeName"), charset)


def _table_id(text: str) -> tuple[str, str]:
    """``"database"."table"`` → names.

    Debezium doubles a quote inside a quoted part; a part that holds both a backtick and a quote it
    leaves as it is, without quotes around it.

    Source: measured, ``tests/golden/envelope``.
    """
    quoted = re.match(r'"((?:[^"]|"")*)"\.', text)
    if quoted is not None:
        return quoted[1].replace('""', '"'), _unquoted(text[quoted.end() :])
    database, point, table = text.partition(".")
    if not point:
        raise ValueError(f'the table id {text!r} is not "database"."table"')
    return database, _unquoted(table)


def _unquoted(text: str) -> str:
    quoted = re.fullmatch(r'"((?:[^"]|"")*)"', text)
    return text if quoted is None else quoted[1].replace('""', '"')


def _record(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"the {what} is not an object")
    return value


def _text(record: Mapping[str, Any], key: str, *, optional: bool = False) -> str:
    value = record.get(key) if optional else record[key]
    if value is None and optional:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{key!r} is not a text")
    return value


def _integer(record: Mapping[str, Any], key: str) -> int:
    value = record[key]
    if type(value) is not int:
        raise TypeError(f"{key!r} is not an integer")
    return value


def _excerpt(data: bytes | None, size: int = 80) -> str:
    if data is None:
        return "null"
    return repr(data[:size].decode("utf-8", "replace")) + ("…" if len(data) > size else "")
