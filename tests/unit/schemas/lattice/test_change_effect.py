"""What came of a change, as sentences."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.lattice.change_effect import ChangeEffect, change_effect
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.model.tables import TableSchema

CONTEXT = ServerContext(version=(8, 0, 36))
COLUMNS = "id INT PRIMARY KEY, a INT, b INT, KEY k (a), KEY two (a, b)"


def table(columns: str = COLUMNS, name: str = "t_1") -> TableSchema:
    statement = parse(f"CREATE TABLE {name} ({columns})", CONTEXT)
    assert isinstance(statement, CreateTable)
    return apply_create(statement, CONTEXT)


def effect(action: str, before: TableSchema | None = None, name: str = "t_1") -> ChangeEffect:
    before = before or table(name=name)
    statement = parse(f"ALTER TABLE {name} {action}", CONTEXT)
    assert isinstance(statement, AlterTable)
    result = apply_alter(before, statement, name, CONTEXT)
    found = change_effect(before, result.schema, result.lineage)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("action", "texts"),
    [
        ("ADD C int NOT NULL", ["ADD COLUMN `c` int NOT NULL"]),
        ("DROP b", ["ADD INDEX `two` (`a`)", "DROP COLUMN `b`"]),
        ("CHANGE a c BIGINT", ["MODIFY COLUMN `c` bigint", "RENAME COLUMN `a` TO `c`"]),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a",
         ["RENAME COLUMN `a` TO `b`", "RENAME COLUMN `b` TO `a`"]),
        ("DROP b, ADD b DATE",
         ["ADD COLUMN `b` date", "ADD INDEX `two` (`a`, `b`)", "DROP COLUMN `b`"]),
        ("RENAME INDEX k TO K2", ["ADD INDEX `k2` (`a`)", "DROP INDEX `k` (`a`)"]),
        ("DROP PRIMARY KEY", ["DROP PRIMARY KEY (`id`)"]),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (id, b)",
         ["ADD PRIMARY KEY (`id`, `b`)", "DROP PRIMARY KEY (`id`)",
          "MODIFY COLUMN `b` int NOT NULL"]),
        ("ADD CHECK (a > 1)", ["ADD CHECK ((`a` > 1))"]),
        ("ADD FOREIGN KEY (b) REFERENCES p (id)",
         ["ADD FOREIGN KEY (`b`) REFERENCES `p` (`id`)", "ADD INDEX `b` (`b`)"]),
        ("DEFAULT CHARACTER SET latin1 COLLATE latin1_bin",
         ["DEFAULT CHARACTER SET latin1 COLLATE latin1_bin"]),
    ],
)  # fmt: skip
def test_what_was_done(action: str, texts: list[str]) -> None:
    assert list(effect(action).texts) == texts


@pytest.mark.parametrize("action", ["ADD CHECK (a > 1)", "ADD FOREIGN KEY (b) REFERENCES p (id)"])
def test_names_that_a_server_makes_of_the_tables_name_do_not_count(action: str) -> None:
    assert effect(action, name="t_1") == effect(action, name="t_2")


@pytest.mark.parametrize("action", ["COMMENT 'x'", "MODIFY b INT INVISIBLE FIRST", "MODIFY b INT"])
def test_what_a_join_does_not_look_at_has_no_effect(action: str) -> None:
    before = table()
    statement = parse(f"ALTER TABLE t_1 {action}", CONTEXT)
    assert isinstance(statement, AlterTable)
    result = apply_alter(before, statement, "t_1", CONTEXT)
    assert change_effect(before, result.schema, result.lineage) is None


@pytest.mark.parametrize(
    ("action", "columns", "is_in"),
    [
        ("ADD c INT", "id INT PRIMARY KEY, c INT", True),
        ("ADD c INT", "id INT PRIMARY KEY, c BIGINT", False),
        ("DROP b", "id INT PRIMARY KEY, b INT", False),
        ("DROP KEY k", "id INT PRIMARY KEY, a INT", True),
        ("RENAME COLUMN a TO c", "id INT PRIMARY KEY, c DATE", True),
        ("RENAME COLUMN a TO c", "id INT PRIMARY KEY, c INT, a INT", False),
        ("DROP a, ADD a DATE", "id INT PRIMARY KEY, a DATE, b INT, KEY two (b)", False),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", COLUMNS, False),
    ],
)
def test_whether_a_table_has_a_change_already(action: str, columns: str, is_in: bool) -> None:
    schema = table(columns, name="t_9")
    shard = ShardSchema(schema, tuple(f"{c.name}#7" for c in schema.columns))
    assert effect(action).is_in(shard) is is_in
