"""What becomes of shards whose columns have other types: by route (``types``) and by target."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.policies import Mode, TypePolicy
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.golden.test_diff import Rollout
from tests.unit.agents.sql_line import SqlLine, shard_of, sql

SERVER = ServerContext(charset="utf8mb4", version=(8, 0, 36))
WIDENED = [
    ("INT", "INT UNSIGNED", "bigint"),
    ("BIGINT", "DECIMAL(38,10)", "decimal(38,10)"),
    ("BIGINT UNSIGNED", "INT", "decimal(20,0)"),
    ("FLOAT", "DOUBLE", "double"),
    ("VARCHAR(255)", "TEXT", "text CHARACTER SET utf8mb4"),
    ("VARCHAR(255)", "TINYTEXT", "varchar(255) CHARACTER SET utf8mb4"),
    ("VARBINARY(300)", "TINYBLOB", "varbinary(300)"),
    (
        "VARCHAR(9) CHARSET latin1",
        "VARCHAR(5)",
        "varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin",
    ),
    (
        "VARCHAR(9) COLLATE utf8mb4_unicode_ci",
        "VARCHAR(9) COLLATE utf8mb4_general_ci",
        "varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    ),
    (
        "VARCHAR(9) COLLATE utf8mb4_0900_as_ci",
        "VARCHAR(9) COLLATE utf8mb4_0900_as_cs",
        "varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_as_cs",
    ),
]


def line(kind: str, types: TypePolicy = TypePolicy.WIDE) -> SqlLine:
    found = SqlLine(Mode.OPTIMISTIC, context=SERVER)
    found.types = types
    for source in ("s0", "s1"):
        found.create(source, f"id INT PRIMARY KEY, c {kind}")
    return found


@pytest.mark.parametrize(("one", "other", "wide"), WIDENED)
def test_the_target_gets_the_type_that_holds_both_and_in_the_end_the_one_that_all_have(
    one: str, other: str, wide: str
) -> None:
    shards = line(one)

    first = shards.alter("s1", f"MODIFY c {other}")
    assert first.outcome is not Outcome.HOLD, first.reason
    assert shards.target is not None
    assert shards.state.schema is not None
    column = shards.state.schema.column("c")
    assert column is not None
    assert column.type == line(wide).schemas["s0"].columns[1].type
    shards.alter("s0", f"MODIFY c {other}")
    assert shards.target.column("c") == shards.schemas["s0"].column("c")


@pytest.mark.parametrize(("one", "other", "wide"), [w for w in WIDENED if "VARBINARY" not in w[0]])
def test_in_the_published_order_they_wait_and_the_hold_says_what_would_hold_both(
    one: str, other: str, wide: str
) -> None:
    shards = line(one, TypePolicy.PUBLISHED)

    held = shards.alter("s1", f"MODIFY c {other}")
    assert held.outcome is Outcome.HOLD
    assert "no type" not in held.reason.replace("has no type for both", "")
    assert "types = 'published'" in held.reason
    assert f"have {wide}, which holds the values of all" in held.hint

    freed = shards.command(CommandKind.SET_POLICY, argument="types=wide")
    assert freed.released == (shard_of("s1"),)
    assert shards.state.schema is not None
    assert shards.state.schema.column("c") == line(wide).schemas["s0"].column("c")


def test_the_shards_wait_again_for_what_has_no_join_when_the_route_becomes_published() -> None:
    shards = line("INT")
    shards.alter("s1", "MODIFY c INT UNSIGNED")
    shards.types = TypePolicy.PUBLISHED

    held = shards.alter("s0", "ADD COLUMN d INT")
    assert held.outcome is Outcome.HOLD
    assert "one is unsigned, the other is not" in held.reason


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ("DATE", "INT", "their values are of different kinds"),
        ("DOUBLE", "INT", "one is exact, the other approximate"),
        ("TEXT", "BLOB", "one is text, the other bytes"),
        ("DECIMAL(65,0)", "DECIMAL(30,30)", "beyond MySQL's decimal(65,30)"),
        ("VARCHAR(9) CHARSET sjis", "VARCHAR(9)", "it is not known that every character of sjis"),
        ("POINT", "GEOMETRY", "one spatial type is not widened"),
        ("ENUM('a','b')", "ENUM('b','a')", "neither list of values is the beginning"),
    ],
)
def test_what_no_type_holds_is_held_with_the_reason(one: str, other: str, reason: str) -> None:
    held = line(one).alter("s1", f"MODIFY c {other}")
    assert held.outcome is Outcome.HOLD
    assert reason in held.reason
    assert "published" not in held.reason


def test_under_a_lock_a_column_becomes_in_one_statement_what_all_shards_have() -> None:
    shards = line("INT")
    shards.mode = Mode.PESSIMISTIC
    shards.alter("s0", "MODIFY c INT UNSIGNED")
    last = shards.alter("s1", "MODIFY c INT UNSIGNED")
    assert sql(last) == ["MODIFY COLUMN `c` int unsigned"]


def test_defaults_of_one_value_are_one_default_of_the_wide_type() -> None:
    shards = line("VARCHAR(9) NOT NULL DEFAULT 'x'")
    assert shards.alter("s1", "MODIFY c TEXT NOT NULL DEFAULT ('x')").outcome is Outcome.EMIT
    shards = line("INT NOT NULL DEFAULT 5")
    decision = shards.alter("s1", "MODIFY c DECIMAL(9,2) NOT NULL DEFAULT 5.0")
    assert "DEFAULT '5.00'" in sql(decision)[0]


KEYED = (
    "create table t (id int primary key, c varchar(9) collate utf8mb4_general_ci, unique key k (c))"
)
SPACES = "keys that differ in trailing spaces alone collide"


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("mysql 8.0.36", "expanding: MODIFY COLUMN `c` varchar(9) CHARACTER SET utf8mb4 COLLATE "
         "utf8mb4_0900_bin"),
        ("mysql 8.0.15", SPACES),
        ("mysql 5.7.44", SPACES),
        ("mariadb 10.11", "COLLATE utf8mb4_nopad_bin"),
    ],
)  # fmt: skip
def test_a_key_gets_a_collation_without_padding_or_the_shard_is_held(
    target: str, says: str
) -> None:
    found = Rollout(KEYED, 2, target).alter(0, "modify c varchar(9) collate utf8mb4_0900_as_ci")
    assert says in found[0], found


def test_a_key_without_a_collation_gets_the_one_that_its_sources_mean() -> None:
    server = ServerContext(version=(5, 7, 44))
    collations = frozenset({"utf8mb4_general_ci"})
    older = SqlLine(Mode.OPTIMISTIC, context=server, collations=collations)
    made = older.create("s0", "k VARCHAR(9) PRIMARY KEY, c VARCHAR(9)")
    assert (
        "`k` varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci" in made.statements[0].sql
    )
    assert "`c` varchar(9) CHARACTER SET utf8mb4," in made.statements[0].sql
    assert "its shards' default collation" in made.reason


def test_a_column_gets_it_before_the_unique_index_that_comes_later() -> None:
    server = ServerContext(version=(5, 7, 44))
    collations = frozenset({"utf8mb4_general_ci"})
    older = SqlLine(Mode.OPTIMISTIC, context=server, collations=collations)
    older.create("s0", "id INT PRIMARY KEY, c VARCHAR(9), k VARCHAR(9) UNIQUE")
    assert sql(older.alter("s0", "ADD UNIQUE INDEX u (c)")) == [
        "MODIFY COLUMN `c` varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        "ADD UNIQUE INDEX `u` (`c`)",
    ]
    assert sql(older.alter("s0", "ADD b INT")) == ["ADD COLUMN `b` int"]


def test_outside_of_keys_the_nearest_collation_does_and_a_note_says_so() -> None:
    rollout = Rollout("create table t (id int primary key, c varchar(9))", 2, "mysql 8.0.15")
    (found,) = rollout.alter(0, "modify c varchar(9) collate utf8mb4_unicode_ci")
    assert "COLLATE utf8mb4_bin" in found
    assert "utf8mb4_0900_bin becomes utf8mb4_bin" in found


@pytest.mark.parametrize(
    ("target", "one", "other", "says"),
    [
        ("iceberg", "int", "int unsigned", "ALTER COLUMN `c` TYPE bigint"),
        ("iceberg", "varchar(9)", "text", ""),
        ("iceberg", "varchar(9) charset latin1", "varchar(9)", ""),
        ("iceberg", "float", "double", "ALTER COLUMN `c` TYPE double"),
        ("iceberg", "bigint", "bigint unsigned",
         "cannot: Iceberg does not change c from bigint to decimal(20,0)"),
        ("tidb 7.5", "varchar(9)", "text", "MODIFY COLUMN `c` text"),
        ("tidb 7.5", "int", "int unsigned", "MODIFY COLUMN `c` bigint"),
        ("tidb 7.5", "varchar(9) charset gbk", "varchar(9)",
         "cannot: TiDB does not change c from varchar(9) CHARACTER SET gbk to varchar(9)"),
    ],
)  # fmt: skip
def test_what_a_kind_of_target_cannot_alter_its_column_to_is_refused_with_that_reason(
    target: str, one: str, other: str, says: str
) -> None:
    rollout = Rollout(f"create table t (id int primary key, c {one})", 2, target)
    found = rollout.alter(0, f"modify c {other}")
    assert says in "".join(found)
    assert bool(found) == bool(says)


@pytest.mark.parametrize(
    ("target", "emits"),
    [
        ("mysql 8.0.36", "expanding: MODIFY COLUMN `c` text CHARACTER SET utf8mb4 DEFAULT ('x')"),
        ("mariadb 10.11", "expanding: MODIFY COLUMN `c` text CHARACTER SET utf8mb4 DEFAULT 'x'"),
        ("mysql 5.7.44", "switching: MODIFY COLUMN `c` text CHARACTER SET utf8mb4"),
    ],
)
def test_a_default_goes_with_its_column_into_text_as_the_target_takes_it(
    target: str, emits: str
) -> None:
    rollout = Rollout("create table t (id int primary key, c varchar(9) default 'x')", 1, target)
    assert rollout.alter(0, "modify c text")[0].startswith(emits)
