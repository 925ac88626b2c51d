"""A database's default character set and collation, which its tables inherit. Pure.

A pair is (charset, collation); a collation of "" is the charset's default.

Source: MySQL Reference Manual, "Database Character Set and Collation" and "Server Character Set
and Collation"; measured on MySQL 5.7, 8.0, 9.7 and MariaDB 10.11 (tests/integration/mysql).
"""

from __future__ import annotations

import re
from typing import TypeAlias

from shardmerge.schemas.ddl.canonical.normalize import normal_charset
from shardmerge.schemas.ddl.changes import AlterDatabase, CreateDatabase
from shardmerge.schemas.model.charsets import charset_name, collation_name
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.server_context import ServerContext

Defaults: TypeAlias = tuple[str, str]
"""Character set and collation."""

_SERVER_VARIABLE = re.compile(r"\b(character_set|collation)_server\s*=\s*'?(\w+)", re.IGNORECASE)


def defaults_after(
    statement: CreateDatabase | AlterDatabase, before: Defaults | None, context: ServerContext
) -> Defaults | None:
    """A database's defaults after a statement that has an effect on it.

    Args:
        statement: The statement.
        before: The database's defaults before it; None when they are not known.
        context: The server, with its own charset and collation.

    Returns:
        None when they are still not known.
    """
    charset, collation = statement.charset, statement.collation
    if isinstance(statement, AlterDatabase):
        if not (charset or collation):
            return before
        if before is not None and not charset and context.is_mariadb:
            # A collation that names no charset is one of the database's charset.
            return normal_charset("", collation, *before, context)
    return normal_charset(charset, collation, context.charset, context.collation, context)


def server_defaults(ddl: str, context: ServerContext) -> Defaults | None:
    """The server's defaults, from the SET statement at the start of Debezium's snapshot.

    The statement is ``SET character_set_server=utf8mb4, collation_server=utf8mb4_0900_ai_ci``. A
    CREATE DATABASE without a character set gives these to the database.

    Returns:
        None for any other statement.

    Source: measured (tests/golden/envelope).
    """
    if ddl[:4].upper() != "SET ":
        return None
    variables = {name.lower(): value for name, value in _SERVER_VARIABLE.findall(ddl)}
    if "character_set" not in variables:
        return None
    collation = collation_name(variables.get("collation", ""))
    return normal_charset(charset_name(variables["character_set"]), collation, "", "", context)


def in_database(context: ServerContext, defaults: Defaults | None) -> ServerContext:
    """The context of a statement about a table of a database with these defaults.

    With None, the server's defaults count. A table inherits the defaults when it is created, and
    again when a later statement says CHARACTER SET DEFAULT.
    """
    if defaults is None or defaults == (context.charset, context.collation):
        return context
    return replace(context, charset=defaults[0], collation=defaults[1])
