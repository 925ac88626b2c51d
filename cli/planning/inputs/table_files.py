"""Files of CREATE TABLE statements → the tables as they are now. Pure.

The files can be those of a skeema folder, with one table each. They can also be dumps of a
structure, such as mysqldump and Rails (``structure.sql``) write: their other statements are left
out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from shardmerge.agents.preview.rollout import TableFile
from shardmerge.schemas.ddl.changes import (
    AlterTable,
    CreateTable,
    CreateTableLike,
    DropTable,
    Irrelevant,
    NoEffect,
    Statement,
)
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.errors import ConfigError, UnparsableDDL
from shardmerge.schemas.model.names import ShardId, quote_identifier
from shardmerge.schemas.model.server_context import ServerContext

from .sql_text import Piece, pieces

_NAME = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_CREATE = re.compile(
    rf"(CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?)({_NAME}\s*\.\s*)?{_NAME}", re.IGNORECASE
)
_CONDITIONAL = re.compile(r"(CREATE\s+TABLE\s+)IF\s+NOT\s+EXISTS\s+", re.IGNORECASE)


def tables_of(
    files: Mapping[str, str], source: str, database: str, context: ServerContext
) -> Iterator[TableFile]:
    """The tables of a database, each with the name that its statement gives it.

    Args:
        files: Name → text.
        source: The source that has the tables.
        database: The database that has the tables.
        context: How the source's server reads a statement.

    Raises:
        ConfigError: A statement cannot be read, or changes a table after its CREATE TABLE.
    """
    for name in sorted(files):
        for piece in _creations(files[name], name, context):
            sql = _CONDITIONAL.sub(r"\1", piece.sql, count=1)
            sql = _CREATE.sub(lambda found: found[0].replace(found[2] or "\0", ""), sql, count=1)
            statement = parse(sql, context)
            assert isinstance(statement, CreateTable)
            shard = ShardId(source, database, statement.name.table)
            yield TableFile(shard, sql, f"{name}:{piece.line}")


def _changes_nothing(statement: Statement) -> bool:
    """Whether it is, for example, the DISABLE KEYS around the rows of a dump."""
    actions = statement.actions if isinstance(statement, AlterTable) else ()
    return bool(actions) and all(isinstance(each, NoEffect) for each in actions)


def table_like(text: str, name: str, shard: ShardId, context: ServerContext) -> TableFile:
    """A shard's table, from a file with one CREATE TABLE. The name in the file does not count.

    Raises:
        ConfigError: The file does not have exactly one CREATE TABLE, or cannot be read.
    """
    found = list(_creations(text, name, context))
    if len(found) != 1:
        raise ConfigError(
            f"{name} has {len(found)} CREATE TABLE statements; for a named shard it must have "
            "exactly one",
            code="SM-5604",
        )
    table = quote_identifier(shard.table).replace("\\", r"\\")
    sql = _CREATE.sub(rf"CREATE TABLE {table}", found[0].sql, count=1)
    return TableFile(shard, sql, f"{name}:{found[0].line}")


def _creations(text: str, name: str, context: ServerContext) -> Iterator[Piece]:
    for piece in pieces(text, backslash_escapes=context.backslash_escapes):
        where = f"{name}:{piece.line}"
        try:
            statement = parse(piece.sql, context)
        except UnparsableDDL as error:
            raise ConfigError(
                f"{where}: {error.message}\n{error.caret()}",
                hint="the file describes tables as they are now, with CREATE TABLE",
                code="SM-5604",
            ) from error
        if isinstance(statement, CreateTable):
            if not _CREATE.match(piece.sql):
                raise ConfigError(
                    f"{where}: expected CREATE TABLE and the table's name, without words between "
                    "them",
                    code="SM-5604",
                )
            yield piece
        elif not (isinstance(statement, (Irrelevant, DropTable)) or _changes_nothing(statement)):
            what = "LIKE names another table" if isinstance(statement, CreateTableLike) else (
                "it is no CREATE TABLE"
            )  # fmt: skip
            raise ConfigError(
                f"{where}: {what}: {' '.join(piece.sql.split())[:80]}",
                hint="the file must describe tables as they are now; statements that change them "
                "belong in a migration",
                code="SM-5604",
            )
