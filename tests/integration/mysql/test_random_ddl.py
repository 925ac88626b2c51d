"""The statements themselves: every feature is reached, and a seed means the same ones."""

from __future__ import annotations

import re
from random import Random

import pytest

from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse

from .random_ddl import TABLES, statement
from .random_types import Dialect
from .shrink import split

NEWEST = Dialect("mysql", (9, 7, 4))
MARIADB = Dialect("mariadb", (10, 11, 18))
FEATURES = {
    "generated column": r" AS \(.*\) (STORED|VIRTUAL)",
    "check": r"CHECK \(",
    "foreign key": r"FOREIGN KEY .*ON (DELETE|UPDATE)",
    "prefix index": r"(KEY|INDEX|UNIQUE)[^,]*`\(\d+\)",
    "descending index": r"` DESC",
    "fulltext index": r"FULLTEXT",
    "spatial index": r"SPATIAL",
    "primary key": r"(ADD|DROP) PRIMARY KEY",
    "partitions": r"PARTITION BY (HASH|RANGE|LIST|KEY)",
    "partition action": r"(REMOVE PARTITIONING|ADD PARTITION|REORGANIZE)",
    "rename of columns": r"RENAME COLUMN",
    "rename of an index": r"RENAME INDEX",
    "rename of tables": r"RENAME TABLE .* TO .*, ",
    "charset": r"CHARACTER SET",
    "collation": r"COLLATE",
    "conversion": r"CONVERT TO",
    "default of the database": r"ALTER DATABASE",
    "charset behind a collation": r"COLLATE \w+ CHARSET",
    "swap of indexes": r"RENAME INDEX (\S+) TO (\S+), RENAME KEY \2 TO \1",
    "several actions": r"ALTER TABLE .*(ADD|DROP|MODIFY|CHANGE).*, (ADD|DROP|MODIFY|CHANGE) ",
    "copy of a table": r"LIKE t",
    "drop of tables": r"DROP TABLE IF EXISTS \w+, ",
    "invisible column": r"INVISIBLE",
    "place": r"(FIRST|AFTER `)",
    "default": r"SET DEFAULT",
    "truncate": r"TRUNCATE",
    "create index": r"CREATE (UNIQUE )?INDEX",
}
ONLY_MYSQL = {
    "rename in an ALTER": r"ALTER TABLE .*RENAME (TO|AS)? ?moved",
    "functional index": r"(KEY|INDEX|UNIQUE).*\(\(?.*\(.*`.*\)\)",
    "hidden index": r"ALTER INDEX .* INVISIBLE",
    "check that is not enforced": r"ALTER CHECK .* NOT ENFORCED",
}
ONLY_MARIADB = {
    "ignored index": r"ALTER INDEX .* IGNORED",
    "guard": r"(ADD|DROP|MODIFY).*IF (NOT )?EXISTS",
    "replacement": r"CREATE OR REPLACE TABLE",
}
TABLE = (
    "CREATE TABLE t (a INT NOT NULL, b VARCHAR(20), c TEXT, g POINT NOT NULL, d DATE,"
    " PRIMARY KEY (a), KEY i1 (b), KEY i2 (d), CONSTRAINT k1 CHECK (a > 1),"
    " CONSTRAINT f1 FOREIGN KEY (a) REFERENCES parent (id))"
)

PLAIN_TABLE = "CREATE TABLE t (a INT NOT NULL, b VARCHAR(20), c TEXT, d DATE, PRIMARY KEY (a))"
"""For statements that are not made where a foreign key or an expression stands in their way."""


def statements(dialect: Dialect, seed: int, count: int) -> list[str]:
    context = ServerContext(dialect.flavour, dialect.version)
    made = []
    for text in (TABLE, TABLE + " PARTITION BY HASH (a)", PLAIN_TABLE):
        parsed = parse(text, context)
        assert isinstance(parsed, CreateTable)
        tables = dict.fromkeys(TABLES, apply_create(parsed, context))
        chance = Random(seed)
        made += [statement(chance, dialect, tables) for _ in range(count)]
        del tables[TABLES[0]]
        made += [statement(chance, dialect, tables) for _ in range(count // 4)]
    return made


@pytest.mark.parametrize(
    ("dialect", "own"), [(NEWEST, ONLY_MYSQL), (MARIADB, ONLY_MARIADB)], ids=["mysql", "mariadb"]
)
def test_random_statements_reach_every_feature(dialect: Dialect, own: dict[str, str]) -> None:
    text = statements(dialect, 1, 4000)
    missing = [
        name
        for name, pattern in {**FEATURES, **own}.items()
        if not any(re.search(pattern, sql) for sql in text)
    ]
    assert missing == []


def test_a_seed_means_the_same_statements() -> None:
    assert statements(NEWEST, 7, 50) == statements(NEWEST, 7, 50)
    assert statements(NEWEST, 7, 50) != statements(NEWEST, 8, 50)


def test_items_are_split_outside_of_quotes_and_parentheses() -> None:
    text = "ADD a SET('x,y','it''s'), ADD (b INT, c INT), COMMENT='a\\',b', DROP `h,h`"
    assert [item.strip() for item in split(text)] == [
        "ADD a SET('x,y','it''s')",
        "ADD (b INT, c INT)",
        "COMMENT='a\\',b'",
        "DROP `h,h`",
    ]
