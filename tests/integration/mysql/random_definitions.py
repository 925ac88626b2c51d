"""Random definitions of columns, indexes, checks, foreign keys and partitions."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import BINARY_NAMES, SPATIAL_NAMES, STRING_NAMES

from . import random_expressions
from .random_types import COLUMNS, Dialect, Typed, any_type, quoted, table_charset

PARENT = "parent"
PARENT_SQL = (
    f"CREATE TABLE {PARENT} (id INT NOT NULL PRIMARY KEY, small SMALLINT, code VARCHAR(20),"
    " big BIGINT UNSIGNED, KEY (small), KEY (code), KEY (big, id))"
)
"""What foreign keys refer to; no random statement touches it."""
_INDEXES = ("i1", "i2", "i3", "a", "b", "i x")
_LONG = frozenset(
    {"tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob"}
)
_PREFIXABLE = frozenset({*STRING_NAMES, *BINARY_NAMES})


def column(chance: Random, dialect: Dialect, others: Sequence[Column]) -> str:
    """A column's type and attributes; ``others`` are those that an expression may name."""
    typed = any_type(chance, dialect)
    generated = _generated(chance, dialect, typed, others) if chance.random() < 0.08 else ""
    attributes = [] if generated else _value_attributes(chance, dialect, typed)
    if generated and chance.random() < 0.2 and not dialect.is_mariadb:
        attributes.append("NOT NULL")
    if chance.random() < 0.05:
        attributes.append(chance.choice(("UNIQUE", "UNIQUE KEY", "PRIMARY KEY", "KEY")))
    if chance.random() < 0.1:
        attributes.append(chance.choice(("COMMENT 'it''s'", "COMMENT 'x'", r"COMMENT 'a\\b'")))
    if dialect.invisible_columns and chance.random() < 0.05:
        attributes.append("INVISIBLE")
    if chance.random() < 0.03 and not dialect.is_mariadb:
        attributes.append(chance.choice(("COLUMN_FORMAT DYNAMIC", "STORAGE DISK")))
    chance.shuffle(attributes)
    if chance.random() < 0.05 and (condition := random_expressions.truth(chance, others)):
        attributes.append(f"CHECK ({condition})")
    if chance.random() < 0.02:
        attributes.append(f"REFERENCES {PARENT} (id)")
    return " ".join([typed.text + generated, *attributes])


def _generated(chance: Random, dialect: Dialect, typed: Typed, others: Sequence[Column]) -> str:
    expression = random_expressions.value(chance, dialect, others)
    if not expression:
        return ""
    stored = ("", " VIRTUAL", " STORED", " PERSISTENT" if dialect.is_mariadb else " STORED")
    words = chance.choice((" AS", " GENERATED ALWAYS AS"))
    return f"{words} ({expression}){chance.choice(stored)}"


def _value_attributes(chance: Random, dialect: Dialect, typed: Typed) -> list[str]:
    attributes = []
    number = chance.random()
    if number < 0.35:
        attributes.append("NOT NULL")
    elif number < 0.5:
        attributes.append("NULL")
    if typed.is_integer and chance.random() < 0.04:
        attributes.append(chance.choice(("AUTO_INCREMENT", "AUTO_INCREMENT UNIQUE")))
        return attributes
    if typed.defaults and chance.random() < 0.45:
        attributes.append(f"DEFAULT {chance.choice(typed.defaults)}")
    elif typed.expressions and dialect.expression_defaults and chance.random() < 0.15:
        attributes.append(f"DEFAULT ({chance.choice(typed.expressions)})")
    elif "NOT NULL" not in attributes and chance.random() < 0.1:
        attributes.append("DEFAULT NULL")
    return attributes


def index_name(chance: Random) -> str:
    return quoted(chance.choice(_INDEXES))


def parts(chance: Random, dialect: Dialect, columns: Sequence[Column], most: int = 3) -> str:
    """Key parts; mostly such as the columns' types allow."""
    usable = [c for c in columns if c.type.name not in (*SPATIAL_NAMES, "json", "vector")]
    if not usable or chance.random() < 0.02:
        return quoted(chance.choice(COLUMNS))
    chosen = chance.sample(usable, min(chance.choice((1, 1, 1, 2, 2, most)), len(usable)))
    texts = []
    for one in chosen:
        length = ""
        if (one.type.name in _LONG and chance.random() < 0.95) or (
            one.type.name in _PREFIXABLE and chance.random() < 0.25
        ):
            length = f"({chance.choice((1, 3, 4, 5, 20))})"
        texts.append(quoted(one.name) + length + chance.choice(("", "", "", " DESC", " ASC")))
    if dialect.functional_indexes and chance.random() < 0.1:
        expression = random_expressions.value(chance, dialect, columns)
        if expression:
            texts.insert(chance.randint(0, len(texts)), f"({expression})")
    return ", ".join(texts)


def index(chance: Random, dialect: Dialect, columns: Sequence[Column]) -> str:
    """An index definition as it stands in CREATE TABLE."""
    named = f"{index_name(chance)} " if chance.random() < 0.6 else ""
    number = chance.random()
    texts = [c for c in columns if c.type.name in STRING_NAMES]
    shapes = [c for c in columns if c.type.name in SPATIAL_NAMES and not c.nullable]
    if texts and number < 0.08:
        word = chance.choice(("FULLTEXT", "FULLTEXT KEY", "FULLTEXT INDEX"))
        parser = " WITH PARSER ngram" if not dialect.is_mariadb and chance.random() < 0.1 else ""
        return f"{word} {named}({quoted(chance.choice(texts).name)}){parser}"
    if shapes and number < 0.5:
        return f"SPATIAL {chance.choice(('KEY', 'INDEX', ''))} {named}({quoted(shapes[0].name)})"
    kind = chance.choice(("KEY", "INDEX", "UNIQUE", "UNIQUE KEY", "CONSTRAINT UNIQUE"))
    if kind == "CONSTRAINT UNIQUE":
        kind, named = (f"CONSTRAINT {named}UNIQUE", "") if named else ("CONSTRAINT UNIQUE", "")
    method = chance.choice(("", "", "", "", "USING BTREE ", "USING HASH "))
    return (
        f"{kind} {named}{method}({parts(chance, dialect, columns)}){index_options(chance, dialect)}"
    )


def index_options(chance: Random, dialect: Dialect) -> str:
    number = chance.random()
    if number < 0.08:
        return " COMMENT 'x'"
    if number < 0.14 and dialect.has((8,), (10, 6)):
        return " IGNORED" if dialect.is_mariadb else " INVISIBLE"
    return " KEY_BLOCK_SIZE=8" if number < 0.16 else ""


def check(chance: Random, dialect: Dialect, columns: Sequence[Column]) -> str:
    """A CHECK definition; "" when no column suits."""
    condition = random_expressions.truth(chance, columns)
    if not condition:
        return ""
    named = (
        f"CONSTRAINT {quoted(chance.choice(('k1', 'k2', 'k 3')))} " if chance.random() < 0.5 else ""
    )
    enforced = ""
    if dialect.has((8, 0, 16), None):
        enforced = chance.choice(("", "", "", " NOT ENFORCED", " ENFORCED"))
    return f"{named}CHECK ({condition}){enforced}"


def foreign_key(chance: Random, columns: Sequence[Column]) -> str:
    """A foreign key to the parent table; "" when no column suits."""
    suited = {"int": "id", "smallint": "small", "varchar": "code", "bigint": "big"}
    usable = [c for c in columns if c.type.name in suited]
    if not usable:
        return ""
    one = chance.choice(usable)
    named = f"CONSTRAINT {quoted(chance.choice(('f1', 'f2')))} " if chance.random() < 0.5 else ""
    own = f"{index_name(chance)} " if chance.random() < 0.2 else ""
    reactions = ("CASCADE", "SET NULL", "RESTRICT", "NO ACTION")
    parent = f"{PARENT} ({suited[one.type.name]})"
    text = f"{named}FOREIGN KEY {own}({quoted(one.name)}) REFERENCES {parent}"
    for event in ("DELETE", "UPDATE"):
        if chance.random() < 0.3:
            text += f" ON {event} {chance.choice(reactions)}"
    return text


def partitioning(chance: Random, columns: Sequence[str]) -> str:
    """PARTITION BY … on integer columns."""
    name = quoted(chance.choice(columns))
    return chance.choice(
        (
            f"PARTITION BY HASH ({name}) PARTITIONS 3",
            f"PARTITION BY LINEAR HASH ({name})",
            f"PARTITION BY KEY ({name}) PARTITIONS 2",
            f"PARTITION BY KEY ALGORITHM = 2 ({name})",
            f"PARTITION BY RANGE ({name}) (PARTITION p0 VALUES LESS THAN (10),"
            " PARTITION p1 VALUES LESS THAN MAXVALUE COMMENT = 'x')",
            f"PARTITION BY RANGE COLUMNS ({name}) (PARTITION p0 VALUES LESS THAN (5))",
            f"PARTITION BY LIST ({name}) (PARTITION p0 VALUES IN (1, 2),"
            " PARTITION p1 VALUES IN (NULL, 3))",
            f"PARTITION BY RANGE ({name}) SUBPARTITION BY HASH ({name}) SUBPARTITIONS 2"
            " (PARTITION p0 VALUES LESS THAN (10))",
        )
    )


def table_options(chance: Random, dialect: Dialect) -> str:
    """What stands behind the closing parenthesis."""
    options = []
    if chance.random() < 0.55:
        options.append(table_charset(chance, dialect))
    for option in (
        "ENGINE=InnoDB", "COMMENT='x''y'", "ROW_FORMAT=DYNAMIC", "AUTO_INCREMENT=5",
        "STATS_PERSISTENT=0", "KEY_BLOCK_SIZE=0", "MAX_ROWS=100", "ENGINE=MyISAM",
    ):  # fmt: skip
        if chance.random() < 0.05:
            options.append(option)
    return chance.choice((" ", ", ")).join(options)
