"""Changes of the primary key to columns whose values no row event told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.agents.coordination.rows.new_keys import HINT
from shardmerge.schemas.model.policies import ExistingRows, Mode
from shardmerge.schemas.records.decisions import Decision, FixupKind, Outcome, StatementKind
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.unit.agents.sql_line import SHARD_COLUMN, SqlLine, sql

BASE = "id INT PRIMARY KEY, a INT"
NUMBERED = "ADD nid BIGINT NOT NULL AUTO_INCREMENT, DROP PRIMARY KEY, ADD PRIMARY KEY (nid)"
REPLACED = "DROP id, ADD uid BINARY(16) NOT NULL FIRST, ADD PRIMARY KEY (uid)"
MADE_UP = "ADD u CHAR(36) NOT NULL DEFAULT (UUID()), DROP PRIMARY KEY, ADD PRIMARY KEY (id, u)"
RENUMBERED = "DROP PRIMARY KEY, DROP id, ADD id INT NOT NULL AUTO_INCREMENT PRIMARY KEY"
UNKNOWN = [NUMBERED, REPLACED, MADE_UP, RENUMBERED]


def line(mode: Mode = Mode.OPTIMISTIC, *shards: str, create: str = BASE) -> SqlLine:
    """Shards whose rows are not read again when DDL changed them."""
    found = SqlLine(mode, *(shards or ("s0",)), create=create)
    found.existing_rows = ExistingRows.HOLD
    return found


def reading(mode: Mode = Mode.OPTIMISTIC, *shards: str, create: str = BASE) -> SqlLine:
    """Shards whose rows are read again, by default."""
    return SqlLine(mode, *(shards or ("s0",)), create=create)


def is_held(decision: Decision) -> bool:
    assert decision.statements == () or decision.outcome is Outcome.EMIT
    return decision.outcome is Outcome.HOLD


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("action", UNKNOWN[:-1])
def test_their_rows_go_and_their_tables_are_read_again(action: str, mode: Mode) -> None:
    shards = reading(mode, "s0", "s1")

    assert is_held(shards.alter("s0", action))
    last = shards.alter("s1", action)

    assert shards.held == []
    assert [reload.shard.source for reload in last.reloads] == ["s0", "s1"]
    # Rows before the place where each got its key do not count any more.
    assert [reload.position.pos for reload in last.reloads] == [30, 40]
    assert [(f.kind, f.shard.source) for f in last.fixups] == [
        (FixupKind.RELOAD, "s0"),
        (FixupKind.RELOAD, "s1"),
    ]
    assert "they are taken out of the target, and read again" in last.warnings[-1]


def test_a_key_that_was_numbered_anew_is_the_shards_own_affair() -> None:
    shards = reading(Mode.OPTIMISTIC, "s0", "s1")
    made = shards.alter("s0", RENUMBERED)
    assert (made.outcome, shards.held) == (Outcome.NOOP, [])
    assert [reload.shard.source for reload in made.reloads] == ["s0"]


def test_only_the_shard_whose_values_are_not_known_is_reloaded() -> None:
    shards = reading(Mode.OPTIMISTIC, "s0", "s1", create=f"{BASE}, n INT NOT NULL")
    key = "DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)"
    shards.alter("s0", f"DROP n, ADD n INT NOT NULL DEFAULT 5, {key}")

    last = shards.alter("s1", key)

    assert [reload.shard.source for reload in last.reloads] == ["s0"]
    assert "DROP PRIMARY KEY, ADD PRIMARY KEY (`id`, `n`)" in sql(last)


def test_a_shard_that_was_held_since_it_came_is_read_again_when_it_has_the_key() -> None:
    shards = reading()
    shards.alter("s0", NUMBERED)
    assert shards.held == []
    assert is_held(shards.create("s1", BASE))

    last = shards.alter("s1", NUMBERED)

    assert [reload.shard.source for reload in last.reloads] == ["s1"]
    assert (shards.held, sql(last)) == ([], [])


@pytest.mark.parametrize("action", UNKNOWN)
def test_a_target_that_does_not_follow_gets_no_rows_under_another_key(action: str) -> None:
    shards = reading()
    shards.command(CommandKind.DISABLE)
    assert is_held(shards.alter("s0", action))

    made = shards.command(CommandKind.ENABLE)

    assert shards.held == []
    assert [reload.shard.source for reload in made.reloads] == ["s0"]


def test_a_shard_whose_table_cannot_be_read_again_is_held() -> None:
    shards = reading()
    shards.command(CommandKind.LEAVE, "s0")
    shards.create("s1", BASE)
    # Rows of the one that left are in the target, and nobody reads them again.
    assert is_held(shards.alter("s1", NUMBERED))


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("action", UNKNOWN)
def test_rows_that_the_new_key_cannot_tell_apart_hold_all_shards(action: str, mode: Mode) -> None:
    shards = line(mode, "s0", "s1")

    shards.alter("s0", action)
    last = shards.alter("s1", action)

    assert is_held(last)
    assert shards.held == ["s0", "s1"]
    assert last.reason.startswith("primary key (")
    assert last.hint == HINT


def test_a_shard_alone_is_held_with_the_reason() -> None:
    made = line().alter("s0", NUMBERED)
    assert made.reason == (
        "primary key (nid): the target cannot know which values in nid DDL gave to rows that"
        " s0/app.t had before"
    )
    made = line().alter("s0", REPLACED)
    assert made.reason == (
        "primary key (uid): rows that differ only in id have the same value in uid"
    )


def test_the_first_key_of_a_table_is_one_of_unknown_values() -> None:
    shards = line(create="a INT")
    assert is_held(shards.alter("s0", "ADD id INT NOT NULL AUTO_INCREMENT PRIMARY KEY"))


def test_a_key_that_grows_by_a_value_that_all_rows_have_is_let_through() -> None:
    shards = line(Mode.OPTIMISTIC, "s0", "s1")
    action = "ADD n INT NOT NULL DEFAULT 5, DROP PRIMARY KEY, ADD PRIMARY KEY (n, id)"
    shards.alter("s0", action)

    last = shards.alter("s1", action)

    assert "DROP PRIMARY KEY, ADD PRIMARY KEY (`n`, `id`)" in sql(last)
    assert (shards.held, last.fixups) == ([], ())


def test_not_when_the_values_of_a_shard_are_others() -> None:
    shards = line(Mode.OPTIMISTIC, "s0", "s1")
    key = "DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)"
    shards.alter("s0", f"ADD n INT NOT NULL, {key}")
    assert is_held(shards.alter("s1", f"ADD n INT NOT NULL DEFAULT 5, {key}"))


def test_a_column_that_the_target_has_with_its_values_becomes_the_key() -> None:
    shards = reading()
    shards.alter("s0", "ADD nid BIGINT NOT NULL AUTO_INCREMENT, ADD UNIQUE KEY u (nid)")
    (fixup,) = shards.decisions[-1].fixups
    assert (fixup.kind, fixup.columns) == (FixupKind.SNAPSHOT, ("nid",))

    made = shards.alter("s0", "DROP PRIMARY KEY, ADD PRIMARY KEY (nid)")

    assert made.statements[0].kind is StatementKind.SWITCHING


@pytest.mark.parametrize("mode", list(Mode))
def test_putting_the_old_key_back_ends_the_hold(mode: Mode) -> None:
    shards = line(mode, "s0", "s1")
    for source in ("s0", "s1"):
        shards.alter(source, NUMBERED)
    for source in ("s0", "s1"):
        made = shards.alter(source, "DROP PRIMARY KEY, ADD PRIMARY KEY (id), ADD KEY k (nid)")
    assert shards.held == []
    # Somebody looks at the new column's values, as the policy asks for, and brings them.
    assert {f.kind for d in shards.decisions for f in d.fixups} == {FixupKind.HOLD}

    for source in ("s0", "s1"):
        made = shards.alter(source, "DROP PRIMARY KEY, ADD PRIMARY KEY (nid)")
    assert "DROP PRIMARY KEY, ADD PRIMARY KEY (`nid`)" in sql(made)
    assert shards.held == []


@pytest.mark.parametrize("mode", list(Mode))
def test_dropping_the_new_column_ends_the_hold(mode: Mode) -> None:
    shards = line(mode, "s0", "s1")
    for source in ("s0", "s1"):
        shards.alter(source, NUMBERED)
    for source in ("s0", "s1"):
        shards.alter(source, "DROP nid, ADD PRIMARY KEY (id)")
    assert (shards.held, shards.columns) == ([], ["a", "id"])


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("action", UNKNOWN)
def test_an_operator_who_emptied_the_target_lets_it_through(action: str, mode: Mode) -> None:
    shards = line(mode, "s0", "s1")
    for source in ("s0", "s1"):
        shards.alter(source, action)

    made = shards.command(CommandKind.SET_POLICY, argument="existing_rows=accept")

    assert shards.held == []
    assert [release.shard.source for release in made.releases] == ["s0", "s1"]
    if action != RENUMBERED:
        assert any("ADD PRIMARY KEY" in text for text in sql(made))
    assert {f.kind for f in made.fixups} <= {FixupKind.ACCEPT}
    (again,) = shards.command(CommandKind.REREAD, "s0").fixups
    assert again.kind is FixupKind.SNAPSHOT


def test_commands_alone_can_leave_it() -> None:
    shards = line(Mode.OPTIMISTIC, "s0", "s1")
    for source in ("s0", "s1"):
        shards.alter(source, NUMBERED)
    for source in ("s0", "s1"):
        # Its rows have another key, by which the target could not tell them apart.
        assert "primary key" in shards.command(CommandKind.SKIP, source).reason
        assert shards.command(CommandKind.LEAVE, source).outcome is Outcome.NOOP
    assert shards.held == []


@pytest.mark.parametrize("action", UNKNOWN)
def test_the_others_go_on_and_a_leaving_one_changes_nothing(action: str) -> None:
    shards = line(Mode.OPTIMISTIC, "s0", "s1", "s2")
    shards.alter("s0", action)
    shards.alter("s1", action)
    assert "ADD COLUMN `b` int" in sql(shards.alter("s2", "ADD b INT"))

    gone = shards.drop("s2")

    assert all("PRIMARY KEY" not in text for text in sql(gone))
    assert shards.held == ["s0", "s1"]
    assert not is_held(shards.create("s2", f"{BASE}, b INT"))


def test_a_new_shard_has_no_rows_in_the_target() -> None:
    shards = line()
    assert shards.create("s1", BASE).outcome is Outcome.NOOP
    assert is_held(shards.create("s2", "nid BIGINT AUTO_INCREMENT PRIMARY KEY, id INT"))


@pytest.mark.parametrize("mode", list(Mode))
def test_the_first_key_is_not_one_value_for_all_rows(mode: Mode) -> None:
    shards = line(mode, create="id INT NOT NULL, a INT")
    held = shards.alter("s0", "ADD k INT NOT NULL DEFAULT 5, ADD PRIMARY KEY (k)")
    assert "rows from before it have no key" in held.reason
    assert not is_held(shards.alter("s0", "DROP PRIMARY KEY, ADD PRIMARY KEY (id)"))


@pytest.mark.parametrize("mode", list(Mode))
def test_rows_of_shards_that_are_gone_are_in_the_target_too(mode: Mode) -> None:
    shards = line(mode)
    shards.command(CommandKind.LEAVE, "s0")
    assert is_held(shards.alter("s0", "ADD k INT NOT NULL, DROP PRIMARY KEY, ADD PRIMARY KEY (k)"))
    assert not is_held(shards.alter("s0", "DROP PRIMARY KEY, ADD PRIMARY KEY (id)"))


def test_columns_that_came_while_propagation_was_disabled() -> None:
    shards = line()
    shards.command(CommandKind.DISABLE)
    assert not is_held(shards.alter("s0", "ADD n INT NOT NULL DEFAULT 5"))
    assert is_held(shards.alter("s0", "DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)"))


def test_origin_columns_in_the_key_do_not_tell_a_shards_own_rows_apart() -> None:
    origin = replace(SHARD_COLUMN, in_keys=True)
    shards = SqlLine(Mode.OPTIMISTIC, "s0", create=BASE, origin=origin)
    shards.existing_rows = ExistingRows.HOLD
    assert is_held(shards.alter("s0", NUMBERED))
    grown = shards.alter("s0", "DROP nid, ADD n INT NOT NULL DEFAULT 5, ADD PRIMARY KEY (id, n)")
    assert "DROP PRIMARY KEY, ADD PRIMARY KEY (`id`, `n`, `_shard`)" in sql(grown)
