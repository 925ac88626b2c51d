"""ALTER IGNORE tells which of its actions may delete rows."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.effects.row_effects import moved_rows
from shardmerge.schemas.model.server_context import ServerContext

MARIADB = ServerContext("mariadb", (10, 11))


def actions(words: str, action: str) -> tuple[str, ...]:
    created = parse("CREATE TABLE t (id INT, a VARCHAR(9))", MARIADB)
    altered = parse(f"ALTER {words} TABLE t {action}", MARIADB)
    assert isinstance(created, CreateTable)
    assert isinstance(altered, AlterTable)
    return apply_alter(apply_create(created, MARIADB), altered, "t", MARIADB).actions


@pytest.mark.parametrize(
    "action",
    [
        # Each of these deleted rows on MariaDB 10.11 and 11.8.
        "ADD UNIQUE (a)",
        "ADD PRIMARY KEY (id)",
        "ADD c INT UNIQUE DEFAULT 5",
        "MODIFY id TINYINT",
        "MODIFY a VARCHAR(9) COLLATE utf8mb4_bin",
        "ADD CHECK (id > 0)",
        "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (2))",
        "CONVERT TO CHARACTER SET latin1",
    ],
)
def test_an_action_that_leaves_out_rows_says_so(action: str) -> None:
    (plain,) = actions("", action)
    (ignoring,) = actions("IGNORE", action)
    assert ignoring == f"IGNORE {plain}"
    assert moved_rows([ignoring]) == (ignoring,)
    assert moved_rows([plain]) == ()
    assert actions("ONLINE IGNORE", action) == (ignoring,)


@pytest.mark.parametrize("action", ["ADD c INT", "DROP a", "ADD INDEX (a)", "FORCE", "RENAME u"])
def test_an_action_that_keeps_every_row_is_the_same_with_ignore(action: str) -> None:
    assert actions("IGNORE", action) == actions("", action)


def test_only_the_actions_that_leave_out_rows_say_so() -> None:
    assert actions("IGNORE", "ADD c INT, ADD UNIQUE (a), DROP id") == (
        "ADD COLUMN `c` int", "IGNORE ADD UNIQUE INDEX (`a`)", "DROP COLUMN `id`",
    )  # fmt: skip
