"""Tables that a connector leaves out, since their columns are not known to anybody. Pure.

If Debezium cannot read a statement, and its table is not known after it, the source's other tables
must go on. So the connector's configuration leaves the table out, until the server's SHOW CREATE
TABLE tells it again. The configuration also says which tables are left out, and since when.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from shardmerge.schemas.ddl.changes import TableName

LEFT_OUT = "shardmerge.left_out"
"""Key of the configuration. Connect and Debezium pass over keys that they do not know."""
_INCLUDE, _EXCLUDE = "table.include.list", "table.exclude.list"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A table that is left out.

    Attributes:
        name: The table.
        statement: ``file:pos`` of the statement after which it was not known.
    """

    name: TableName
    statement: str


def left_out_of(config: Mapping[str, str]) -> tuple[LeftOut, ...]:
    """The tables that a configuration leaves out."""
    return tuple(
        LeftOut(TableName(database, table), statement)
        for database, table, statement in json.loads(config.get(LEFT_OUT, "[]"))
    )


def leaving_out(config: Mapping[str, str], tables: tuple[LeftOut, ...]) -> dict[str, str]:
    """A configuration that leaves out these tables, and no others.

    Args:
        config: Of a connector, with or without tables that are left out.
        tables: May be empty.
    """
    plain = _plain(config)
    if not tables:
        return plain
    expression = "|".join(f"{literal(t.name.database)}[.]{literal(t.name.table)}" for t in tables)
    told = json.dumps([(t.name.database, t.name.table, t.statement) for t in tables])
    if included := plain.get(_INCLUDE):
        # Debezium refuses a configuration with both lists, and matches expressions to whole names.
        narrowed = ",".join(f"(?!(?:{expression})$)(?:{one})" for one in included.split(","))
        return {**plain, _INCLUDE: narrowed, f"{LEFT_OUT}.of": included, LEFT_OUT: told}
    return {**plain, _EXCLUDE: f"(?:{expression})", LEFT_OUT: told}


def _plain(config: Mapping[str, str]) -> dict[str, str]:
    plain = dict(config)
    if plain.pop(LEFT_OUT, None) is None:
        return plain
    if (included := plain.pop(f"{LEFT_OUT}.of", None)) is not None:
        plain[_INCLUDE] = included
    else:
        plain.pop(_EXCLUDE, None)
    return plain


def literal(name: str) -> str:
    """A name as a regular expression of Java without a comma, at which Debezium splits a list."""
    return "".join(c if c.isascii() and c.isalnum() else f"\\x{{{ord(c):x}}}" for c in name)
