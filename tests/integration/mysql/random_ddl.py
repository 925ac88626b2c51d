"""Random DDL on a few tables: mostly sensible, always the same for one seed and one server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random

from shardmerge.schemas.model.tables import Column, DefaultKind, TableSchema
from shardmerge.schemas.model.types import ColumnType

from . import random_definitions as definitions
from .random_actions import Subject, actions
from .random_types import COLUMNS, Dialect, quoted, table_charset

TABLES = ("t0", "t1", "T2")
NEW_TABLE = "moved"


def statement(chance: Random, dialect: Dialect, tables: Mapping[str, TableSchema]) -> str:
    """Any statement on one of the tables; ``tables`` holds those that exist."""
    sql = _statement(chance, dialect, tables)
    while _contradicts_itself(dialect, sql, tables):
        sql = _statement(chance, dialect, tables)
    # MariaDB's SHOW CREATE TABLE does not quote the names behind PARTITION BY.
    return sql.replace("`i``j`", "`ij`") if dialect.is_mariadb else sql


def _contradicts_itself(dialect: Dialect, sql: str, tables: Mapping[str, TableSchema]) -> bool:
    """Whether MySQL would tell two things about an expression that is a default.

    With a primary key 8.0.15's SHOW CREATE TABLE forgets what information_schema goes on telling;
    later ones forget it by what else the statement does.
    """
    if dialect.is_mariadb:
        return False
    found = re.match(r"(?:ALTER|CREATE) TABLE (\w+) ", sql)
    schema = tables.get(found[1]) if found else None
    columns = schema.columns if schema else ()
    computed = any(c.default and c.default.kind is DefaultKind.EXPRESSION for c in columns)
    if re.search(r"PRIMARY KEY|[^EX] KEY\b(?! [`(U])", sql):
        return computed or "DEFAULT (" in sql
    key = schema.primary_key if schema else None
    names = [quoted(name) for name in key.columns] if key else []
    return "DEFAULT (" in sql and any(name in sql for name in names)


def _statement(chance: Random, dialect: Dialect, tables: Mapping[str, TableSchema]) -> str:
    missing = [name for name in TABLES if name not in tables]
    if chance.random() < (0.05 if missing else 0.01):
        return f"ALTER DATABASE {table_charset(chance, dialect)}"
    if missing:
        if NEW_TABLE in tables and chance.random() < 0.7:
            return f"RENAME TABLE {NEW_TABLE} TO {missing[0]}"
        return create_table(chance, dialect, missing[0])
    name, other = chance.choice(TABLES), chance.choice(TABLES)
    number = chance.random()
    if number < 0.02:
        return f"DROP TABLE IF EXISTS {name}, {other if other != name else NEW_TABLE}"
    if number < 0.03:
        return f"DROP TABLE {name}"
    if number < 0.05 and name != other:
        return f"RENAME TABLE {name} TO swap, {other} TO {name}, swap TO {other}"
    if number < 0.06:
        return f"RENAME TABLE {name} TO {NEW_TABLE}"
    # MySQL numbers the checks of a copy by the old names, the tracker by their age.
    if number < 0.08 and len(tables[name].checks) < 2:
        return f"CREATE TABLE {chance.choice(('IF NOT EXISTS ', ''))}{NEW_TABLE} LIKE {name}"
    if number < 0.09:
        return f"TRUNCATE {name}"
    if number < 0.12:
        return create_index(chance, dialect, name, tables[name])
    if number < 0.14 and dialect.is_mariadb:
        return create_table(chance, dialect, name).replace("CREATE", "CREATE OR REPLACE", 1)
    if number < 0.15:
        return f"DROP INDEX {Subject(chance, dialect, tables[name]).index()} ON {name}"
    return _alter(chance, dialect, name, tables)


def _alter(chance: Random, dialect: Dialect, name: str, tables: Mapping[str, TableSchema]) -> str:
    chosen = actions(Subject(chance, dialect, tables[name]))
    # MariaDB forgets the foreign keys of a table that it copies and renames at once.
    if chance.random() < 0.03 and not (dialect.is_mariadb and tables[name].foreign_keys):
        chosen.append(f"RENAME {chance.choice(('TO', 'AS', ''))} {NEW_TABLE}")
    if not tables[name].partitioning and chance.random() < 0.03:
        key = tables[name].primary_key
        if key and key.columns and not tables[name].foreign_keys:
            return f"ALTER TABLE {name} {definitions.partitioning(chance, key.columns)}"
    return f"ALTER TABLE {name} {', '.join(chosen)}"


def create_index(chance: Random, dialect: Dialect, name: str, schema: TableSchema) -> str:
    """A CREATE INDEX statement."""
    replace = "OR REPLACE " if dialect.is_mariadb and chance.random() < 0.2 else ""
    unique = chance.choice(("", "UNIQUE "))
    method = chance.choice(("", "", " USING BTREE"))
    parts = definitions.parts(chance, dialect, schema.columns)
    options = definitions.index_options(chance, dialect)
    return (
        f"CREATE {replace}{unique}INDEX {definitions.index_name(chance)}{method}"
        f" ON {name} ({parts}){options}"
    )


def create_table(chance: Random, dialect: Dialect, name: str) -> str:
    """A CREATE TABLE statement."""
    if chance.random() < 0.1:
        return _partitioned(chance, dialect, name)
    # Two columns of known types first: expressions and keys need something to name.
    known = (
        Column("a", ColumnType("int")),
        Column("b", ColumnType("varchar", 20, charset="utf8mb4")),
    )
    parts = ["`a` INT NOT NULL", "`b` VARCHAR(20)"]
    for column in chance.sample(COLUMNS[2:], chance.randint(0, 4)):
        parts.append(f"{quoted(column)} {definitions.column(chance, dialect, known)}")
    chance.shuffle(parts)
    parts += [definitions.index(chance, dialect, known) for _ in range(chance.randint(0, 3))]
    if chance.random() < 0.5:
        parts.append(f"PRIMARY KEY ({definitions.parts(chance, dialect, known, 2)})")
    if chance.random() < 0.2:
        parts.append(definitions.check(chance, dialect, known))
    if chance.random() < 0.15:
        parts.append(definitions.foreign_key(chance, known))
    options = definitions.table_options(chance, dialect)
    return f"CREATE TABLE {name} ({', '.join(filter(None, parts))}) {options}"


def _partitioned(chance: Random, dialect: Dialect, name: str) -> str:
    column = definitions.column(chance, dialect, ())
    return (
        f"CREATE TABLE {name} (`a` INT, `b` INT NOT NULL, `c` {column}, PRIMARY KEY (`a`, `b`))"
        f" {definitions.partitioning(chance, ('a', 'b'))}"
    )
