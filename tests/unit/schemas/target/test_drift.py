"""What a change by hand can do to rows, and which statements must not overwrite it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.actions import Action, Adoption, CheckAddition
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import Check
from shardmerge.schemas.records.drift import Difference, DriftKind, needs_somebody
from shardmerge.schemas.records.earlier_statements import actions_of
from shardmerge.schemas.target.drift import adoption_of, checked_adoption, differences
from shardmerge.schemas.target.drift_meetings import holds_already, met, met_text, replaced
from shardmerge.schemas.target.table_state import TableState, executed_state, state_after
from tests.strategies import table

SERVER = ServerContext("mysql", (8, 0, 36), default_database="m")
T = TargetTable("m", "t")
BASE = "id INT PRIMARY KEY, a INT, b VARCHAR(10), KEY i (a), UNIQUE KEY u (b)"


def state(columns: str, **apart: str) -> TableState:
    return TableState(table(f"CREATE TABLE t ({columns})"), apart).in_context(SERVER)


def actions(clause: str) -> tuple[Action, ...]:
    return actions_of(f"ALTER TABLE {T.sql} {clause}")


def kinds(found: str, expected: str = BASE) -> dict[str, DriftKind]:
    return {each.subject: each.kind for each in differences(state(expected), state(found))}


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ("a BIGINT", DriftKind.HARMLESS),
        ("a SMALLINT", DriftKind.REFUSES),
        ("a INT NOT NULL", DriftKind.REFUSES),
        ("a INT DEFAULT 7", DriftKind.VALUES),
        ("a DATE", DriftKind.VALUES),
        ("a INT AS (id + 1)", DriftKind.REFUSES),
    ],
)
def test_another_definition_of_a_column(found: str, kind: DriftKind) -> None:
    assert kinds(f"id INT PRIMARY KEY, {found}", "id INT PRIMARY KEY, a INT") == {"column:a": kind}


def test_another_collation_matters_only_in_a_unique_key() -> None:
    expected = "id INT PRIMARY KEY, b VARCHAR(9) COLLATE utf8mb4_bin"
    found = "id INT PRIMARY KEY, b VARCHAR(9) COLLATE utf8mb4_general_ci"
    assert kinds(found, expected) == {"column:b": DriftKind.HARMLESS}
    unique = ", UNIQUE KEY u (b)"
    assert kinds(found + unique, expected + unique) == {"column:b": DriftKind.VALUES}


def test_a_computed_column_that_is_none_any_more_can_hold_other_values() -> None:
    expected = "id INT PRIMARY KEY, a INT AS (id + 1)"
    for found in ("id INT PRIMARY KEY, a INT", "id INT PRIMARY KEY, a INT AS (id + 2)"):
        assert kinds(found, expected) == {"column:a": DriftKind.VALUES}


def test_the_order_of_columns_comments_and_options_do_not_count() -> None:
    found = "b VARCHAR(10) COMMENT 'x', a INT, id INT PRIMARY KEY, KEY i (a), UNIQUE KEY u (b)"
    assert kinds(found) == {}


def test_a_missing_table_is_one_difference_that_cannot_be_adopted() -> None:
    [found] = differences(state(BASE), TableState(None))
    assert (found.subject, found.kind) == ("table", DriftKind.MISSING)
    assert "cannot be adopted" in str(adoption_of(found, TableState(None)))
    assert differences(TableState(None), state(BASE)) == ()


@pytest.mark.parametrize(
    ("subject", "text", "kind"),
    [
        ("trigger:x", "BEFORE INSERT SET NEW.a = 1", DriftKind.VALUES),
        ("trigger:x", "AFTER INSERT CALL p()", DriftKind.REFUSES),
        ("partitioning", "PARTITION BY RANGE (`id`)", DriftKind.REFUSES),
        ("partitioning", "PARTITION BY HASH (`id`)", DriftKind.HARMLESS),
        ("partitioning", "PARTITION BY HASH (`list_id`)", DriftKind.HARMLESS),
        ("rows", "append by spark, snapshot 5", DriftKind.VALUES),
        ("rollback", "without the rows of snapshot 5", DriftKind.VALUES),
        ("identifier", "(`id`)", DriftKind.HARMLESS),
    ],
)
def test_what_no_schema_has(subject: str, text: str, kind: DriftKind) -> None:
    there = state(BASE, **{subject: text})
    [found] = differences(state(BASE), there)
    assert (found.subject, found.kind, found.found) == (subject, kind, text)
    adoption = adoption_of(found, there)
    assert adoption == Adoption(subject, text)
    adopted = state_after(state(BASE), (adoption,), T, SERVER)
    assert differences(adopted, there) == ()


@pytest.mark.parametrize(
    "more",
    [
        "Level INT, KEY by_level (Level)",
        "Level INT COMMENT 'by hand'",
        "c INT, KEY by_c (c) COMMENT 'by hand'",
        "c VARCHAR(9) DEFAULT '\U0001f600'",
        "CHECK (a > '\U0001f600')",
    ],
)
def test_a_part_is_adopted_as_it_is_compared(more: str) -> None:
    there = state(f"{BASE}, {more}")
    for found in differences(state(BASE), there):
        adoption = adoption_of(found, there)
        assert isinstance(adoption, Adoption)
        assert checked_adoption(adoption) == adoption
        with pytest.raises(ContractError, match="cannot be adopted"):
            checked_adoption(replace(adoption, definition="another"))


def test_every_kind_but_the_harmless_one_needs_somebody() -> None:
    assert [kind for kind in DriftKind if not needs_somebody(kind)] == [DriftKind.HARMLESS]
    codes = {Difference("table", kind, "", "").code for kind in DriftKind}
    assert len(codes) == len(DriftKind)


@pytest.mark.parametrize(
    ("by_hand", "clause", "hits"),
    [
        ("a BIGINT", "MODIFY COLUMN a SMALLINT", ["column:a"]),
        ("a BIGINT", "MODIFY COLUMN a DECIMAL(30,0)", []),
        ("a BIGINT", "MODIFY COLUMN b VARCHAR(20)", []),
        ("a BIGINT", "DROP COLUMN a", []),
        ("a VARCHAR(9)", "DROP COLUMN a", ["column:a"]),
        ("a BIGINT", "RENAME COLUMN a TO c", ["column:a"]),
        ("a BIGINT", "ALTER COLUMN a SET DEFAULT 5", ["column:a"]),
        ("a INT, c INT", "RENAME COLUMN a TO c", ["column:c"]),
        ("a INT, c INT", "CHANGE COLUMN a c BIGINT", ["column:c"]),
        ("a INT, c INT", "ADD COLUMN c INT", []),
        ("a INT, KEY j (b)", "ADD INDEX j (a)", ["index:j"]),
        ("a INT, KEY j (b)", "ADD INDEX j (b)", []),
        ("a INT, CHECK (id < 9)", "DROP COLUMN a", []),
    ],
)
def test_a_statement_meets_only_what_it_would_overwrite(
    by_hand: str, clause: str, hits: list[str]
) -> None:
    rest = "id INT PRIMARY KEY, b VARCHAR(10)"
    expected, found = state(f"{rest}, a INT"), state(f"{rest}, {by_hand}")
    assert [each.subject for each in met(expected, found, actions(clause))] == hits


def test_an_index_that_somebody_made_anew_is_not_dropped() -> None:
    expected = state("id INT PRIMARY KEY, a INT, KEY i (a)")
    other = state("id INT PRIMARY KEY, a INT, KEY i (a, id)")
    gone = state("id INT PRIMARY KEY, a INT")
    drop = actions("DROP INDEX i")
    assert [each.subject for each in met(expected, other, drop)] == ["index:i"]
    assert met(expected, gone, drop) == ()


def test_a_check_of_the_same_name_must_be_the_same() -> None:
    expected = state("id INT PRIMARY KEY")
    found = state("id INT PRIMARY KEY, CONSTRAINT k CHECK (id < 9)")
    shown = found.parts()["check:k"]
    assert isinstance(shown, Check)
    assert met(expected, found, (CheckAddition(shown),)) == ()
    [hit] = met(expected, found, (CheckAddition(replace(shown, expression="id < 8")),))
    assert hit.subject == "check:k"


def test_the_text_has_both_definitions_and_the_ways_out() -> None:
    found = met(state("id INT PRIMARY KEY, a INT"), state("id INT PRIMARY KEY, a BIGINT"),
                actions("RENAME COLUMN a TO c"))  # fmt: skip
    text = met_text(T, found)
    assert "column:a: decided is `a` int, but the table has `a` bigint" in text
    assert "shardmerge drift heal m.t --pipeline FILE" in text
    assert "shardmerge drift adopt m.t --pipeline FILE" in text


def test_statements_whose_work_was_there_already_are_folded_like_others() -> None:
    create = actions_of(f"CREATE TABLE {T.sql} (id INT PRIMARY KEY, a INT, KEY i (a))")
    adopted = (Adoption("index:i", ""),)
    executed = [
        create, adopted, actions("DROP INDEX i"), actions("ADD COLUMN a INT"),
        actions("DROP COLUMN zz"), actions("ADD COLUMN b INT"),
    ]  # fmt: skip
    made = executed_state(executed, T, SERVER).in_context(SERVER)
    assert differences(made, state("id INT PRIMARY KEY, a INT, b INT")) == ()


def stays_as_it_is(expected: TableState, there: TableState, clause: str) -> bool:
    after = state_after(expected, actions(clause), T, SERVER).in_context(SERVER)
    return holds_already(expected, after, there, actions(clause))


@pytest.mark.parametrize(
    ("decided", "found", "clause", "stays"),
    [
        ("b VARCHAR(10)", "b VARCHAR(99)", "MODIFY b VARCHAR(20)", True),
        ("b VARCHAR(10)", "b TEXT", "MODIFY b VARCHAR(20)", True),
        ("b INT", "b BIGINT", "MODIFY b INT NULL DEFAULT 3", False),
        ("b SMALLINT", "b BIGINT", "MODIFY b INT", True),
        ("b DECIMAL(5,2)", "b DECIMAL(20,4)", "MODIFY b DECIMAL(7,2)", True),
        ("b DATETIME", "b DATETIME(6)", "MODIFY b DATETIME(3)", True),
        ("b ENUM('p')", "b ENUM('p','q','r')", "MODIFY b ENUM('p','q')", True),
        # The table refuses what was decided, or was made another kind of column.
        ("b VARCHAR(10)", "b VARCHAR(15)", "MODIFY b VARCHAR(20)", False),
        ("b SMALLINT", "b INT UNSIGNED", "MODIFY b INT", False),
        ("b SMALLINT", "b BIGINT NOT NULL", "MODIFY b INT", False),
        ("b SMALLINT", "b DOUBLE", "MODIFY b INT", False),
        # The server would convert values.
        ("b VARCHAR(30)", "b VARCHAR(99)", "MODIFY b VARCHAR(20)", False),
        ("b BINARY(2)", "b BINARY(8)", "MODIFY b BINARY(4)", False),
        ("b FLOAT", "b DOUBLE", "MODIFY b DOUBLE", False),
        # Only columns that keep their names.
        ("b SMALLINT", "b BIGINT", "CHANGE b c INT", False),
        ("b SMALLINT", "b BIGINT", "MODIFY b INT, ADD COLUMN c INT", False),
    ],
)
def test_a_column_that_is_wider_already_stays_as_it_is(
    decided: str, found: str, clause: str, stays: bool
) -> None:
    expected, there = (state(f"id INT PRIMARY KEY, {each}") for each in (decided, found))
    assert stays_as_it_is(expected, there, clause) is stays


def test_a_wider_column_that_stayed_can_be_widened_dropped_and_not_narrowed() -> None:
    expected, there = (state(f"id INT PRIMARY KEY, b DECIMAL({digits})") for digits in (5, 9))
    assert met(expected, there, actions("MODIFY b DECIMAL(20)")) == ()
    assert met(expected, there, actions("DROP COLUMN b")) == ()
    narrower = "MODIFY b DECIMAL(4)"
    assert [each.subject for each in met(expected, there, actions(narrower))] == ["column:b"]
    assert not stays_as_it_is(expected, there, narrower)


@pytest.mark.parametrize(
    ("clause", "told"),
    [
        ("DROP COLUMN a", ["column:a"]),
        ("MODIFY a DECIMAL(30)", ["column:a"]),
        ("DROP COLUMN b", []),
        ("ADD INDEX i (a)", []),
    ],
)
def test_a_change_by_hand_that_goes_without_loss_is_told(clause: str, told: list[str]) -> None:
    expected = state("id INT PRIMARY KEY, a INT, b INT")
    found = state("id INT PRIMARY KEY, a BIGINT, b INT")
    assert met(expected, found, actions(clause)) == ()
    assert [each.subject for each in replaced(expected, found, actions(clause))] == told
