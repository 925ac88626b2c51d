"""The actions of statements that are texts alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.actions import (
    Action,
    CharsetChange,
    CheckRemoval,
    ColumnLiteral,
    ColumnRemoval,
    ColumnText,
    DefaultChange,
    DefaultFill,
    IndexRemoval,
    RowFill,
    RowRemoval,
    TypeChange,
    ValueMove,
)
from shardmerge.schemas.model.tables import Default, DefaultKind
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.earlier_statements import actions_of, with_actions
from tests.unit.schemas.records.test_codec_plain import CHANGE, EMITTED, STATEMENT


def literal(text: str) -> Default:
    return Default(DefaultKind.LITERAL, text)


@pytest.mark.parametrize(
    ("sql", "actions"),
    [
        ("DROP COLUMN `a``b`", (ColumnRemoval("a`b"),)),
        ("DROP INDEX `k`", (IndexRemoval("k"),)),
        ("DROP PRIMARY KEY", (IndexRemoval("PRIMARY"),)),
        ("DROP CHECK `c`", (CheckRemoval("c"),)),
        ("DROP CONSTRAINT `c`", (CheckRemoval("c"),)),
        ("ALTER COLUMN `a` DROP DEFAULT", (DefaultChange("a", None),)),
        ("ALTER COLUMN `a` SET DEFAULT 'it''s'", (DefaultChange("a", literal("it's")),)),
        ("ALTER COLUMN `a` SET DEFAULT 0x4142", (DefaultChange("a", literal("0x4142")),)),
        ("ALTER COLUMN `a` SET DEFAULT b'101'", (DefaultChange("a", literal("b'101'")),)),
        ("ALTER COLUMN `a` TYPE decimal(9,2)", (TypeChange("a", ColumnType("decimal", 9, 2)),)),
        ("DEFAULT CHARACTER SET utf8 COLLATE utf8_bin", (CharsetChange("utf8mb3", "utf8mb3_bin"),)),
        ("ALTER COLUMN `a` TYPE money", ()),
        ("ADD COLUMN `a` money", ()),
        ("MODIFY COLUMN `a` int FIRST", ()),
        ("DROP FOREIGN KEY `f`", ()),
        ("DROP COLUMN `a`, ENGINE = InnoDB", ()),
        ("DANCE", ()),
    ],
)
def test_a_clause_of_alter_table_has_its_action(sql: str, actions: tuple[Action, ...]) -> None:
    assert actions_of(f"ALTER TABLE `m`.`t` {sql}") == actions


@pytest.mark.parametrize(
    ("sql", "action"),
    [
        ("DELETE FROM `m`.`t`", RowRemoval(())),
        (
            "DELETE FROM `m`.`t` WHERE (`_d` = 'x) OR (y' AND `_s` = 'a') OR (`_d` = '\\\\' AND"
            " `_s` = 'b')",
            RowRemoval((
                (ColumnText("_d", "x) OR (y"), ColumnText("_s", "a")),
                (ColumnText("_d", "\\"), ColumnText("_s", "b")),
            )),
        ),
        (
            "UPDATE `m`.`t` SET `a` = 5, `b` = 'x, y', `u` = `u` WHERE `_s` = 'a AND NOT (' AND NOT"
            " (`a` <=> 5 AND `b` <=> 'x')",
            RowFill(
                (ColumnText("_s", "a AND NOT ("),),
                (ColumnLiteral("a", "5"), ColumnLiteral("b", "'x, y'")),
            ),
        ),
        (
            "UPDATE `m`.`t` SET `n` = `o`, `o` = NULL, `u` = `u` WHERE `o` IS NOT NULL",
            ValueMove("o", "n", overwrites=True),
        ),
        (
            "UPDATE `m`.`t` SET `n` = `o` WHERE `n` IS NULL AND `o` IS NOT NULL",
            ValueMove("o", "n", overwrites=False),
        ),
        ("UPDATE `m`.`t` SET `a` = DEFAULT, `u` = `u` WHERE `a` IS NULL", DefaultFill("a")),
    ],
)  # fmt: skip
def test_a_change_of_rows_has_its_action(sql: str, action: Action) -> None:
    assert actions_of(sql) == (action,)


@pytest.mark.parametrize(
    "sql",
    [
        "", "DROP TABLE `m`.`t`", "TRUNCATE TABLE `m`.`t`", "DELETE FROM t",
        "DELETE FROM `m`.`t` LIMIT 1", "DELETE FROM `m`.`t` WHERE `a` = 1",
        "DELETE FROM `m`.`t` WHERE (`a` = 'x') OR (`a` = 'y'", "UPDATE `m`.`t` SET `a` = 1",
        "DELETE FROM `m`.`t` WHERE `a` = 'x' OR `b` = 'y'", "UPDATE `m`.`t` SET WHERE `a` = 'x'",
        "UPDATE `m`.`t` SET `a` = now() WHERE `_s` = 'a' AND NOT (`a` <=> 1)",
    ],
)  # fmt: skip
def test_what_is_no_text_of_ours_has_no_actions(sql: str) -> None:
    assert actions_of(sql) == ()


def test_only_statements_without_actions_get_those_of_their_texts() -> None:
    bare = replace(STATEMENT, actions=())
    strange = replace(STATEMENT, actions=(ColumnRemoval("other"),))
    told = with_actions(replace(EMITTED, statements=(bare, strange)))
    assert told.statements == (STATEMENT, strange)
    assert with_actions(EMITTED) is EMITTED
    assert with_actions(CHANGE) is CHANGE
