"""Tables without a primary key whose rows DDL changed: who is read as a whole, and what comes."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.policies import ExistingRows, Mode, RowsPolicy
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.records.decisions import Decision, FixupKind, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind
from shardmerge.schemas.records.reloads import Reload, reloads_text
from tests.unit.agents.sql_line import SHARD_COLUMN, SqlLine, shard_of

MADE = "ADD COLUMN c DATETIME DEFAULT CURRENT_TIMESTAMP"


def line(*sources: str) -> SqlLine:
    return SqlLine(Mode.OPTIMISTIC, *sources, create="a INT")


def asked(decision: Decision) -> list[tuple[str, FixupKind]]:
    return [(fixup.shard.source, fixup.kind) for fixup in decision.fixups]


def read(line: SqlLine, *sources: str, pos: int = 900) -> Decision:
    """Tell that the shards' tables were read at a place."""
    place = SourcePosition(0, "binlog.000001", pos, 0)
    text = reloads_text(Reload(shard_of(source), place, 7) for source in sources)
    return line.command(CommandKind.RELOADED, argument=text)


def test_the_table_is_asked_for_and_its_rows_of_before_go_when_it_was_read() -> None:
    shards = line("s1")
    made = shards.alter("s1", MADE)
    assert asked(made) == [("s1", FixupKind.WHOLE)]
    assert "read again as a whole (by the watchdog)" in made.warnings[0]

    told = read(shards, "s1")

    assert told.outcome is Outcome.NOOP
    assert [(r.shard, r.position.pos, r.began_ms) for r in told.reloads] == [
        (shard_of("s1"), 900, 7)
    ]
    assert (told.fixups, shards.state.awaited) == ((), ())


def test_all_shards_of_a_target_that_does_not_tell_their_rows_apart_are_read() -> None:
    shards = line("s1", "s2", "s3")
    made = shards.alter("s2", MADE)
    assert asked(made) == [(s, FixupKind.WHOLE) for s in ("s1", "s2", "s3")]
    assert read(shards, "s1", "s2").outcome is Outcome.REFUSED
    assert len(read(shards, "s1", "s2", "s3").reloads) == 3


def test_origin_columns_tell_the_rows_of_one() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s1", "s2", create="a INT", origin=SHARD_COLUMN)
    assert asked(shards.alter("s2", MADE)) == [("s2", FixupKind.WHOLE)]


def test_what_was_read_before_the_schema_changed_once_more_does_not_count() -> None:
    shards = line("s1")
    shards.alter("s1", MADE)
    shards.alter("s1", "ADD d INT")  # at 30

    stale = read(shards, "s1", pos=30)

    assert stale.outcome is Outcome.REFUSED
    assert stale.reason == (
        "s1/app.t was read at binlog.000001:30, its schema has changed at binlog.000001:30"
    )
    assert read(shards, "s1", pos=31).outcome is Outcome.NOOP


def test_nothing_counts_while_one_of_them_is_held() -> None:
    shards = line("s1", "s2")
    shards.alter("s1", MADE)
    shards.alter("s2", "MODIFY a DATE")

    refused = read(shards, "s1", "s2")

    assert refused.reason.startswith("s2/app.t is held at binlog.000001:40: ")
    shards.alter("s2", "MODIFY a INT")
    assert read(shards, "s1", "s2").outcome is Outcome.NOOP


def test_nobody_but_the_watchdog_is_heard() -> None:
    shards = line("s1")
    assert "no shard" in read(shards, "s1").reason
    refused = shards.command(CommandKind.RELOADED, argument="s1")
    assert refused.outcome is Outcome.REFUSED
    assert "not a list of readings" in refused.reason


def test_rows_of_shards_that_left_could_be_anybodys() -> None:
    shards = line("s1", "s2")
    shards.drop("s2")
    made = shards.alter("s1", MADE)
    assert asked(made) == [("s1", FixupKind.ACCEPT)]
    assert made.fixups[0].reason.endswith("cannot be told from those of shards that left")

    deleted = SqlLine(
        Mode.OPTIMISTIC, "s1", "s2", create="a INT", origin=SHARD_COLUMN,
        on_drop=RowsPolicy.DELETE,
    )  # fmt: skip
    deleted.drop("s2")
    assert not deleted.state.departed_rows


def test_one_that_leaves_is_not_waited_for() -> None:
    shards = line("s1", "s2")
    shards.alter("s1", MADE)
    shards.drop("s2")
    assert [shard.source for shard in shards.state.awaited] == ["s1"]


def test_the_policy_decides() -> None:
    for policy, kind in (
        (ExistingRows.ACCEPT, FixupKind.ACCEPT),
        (ExistingRows.HOLD, FixupKind.HOLD),
    ):
        shards = line("s1")
        shards.existing_rows = policy
        assert asked(shards.alter("s1", MADE)) == [("s1", kind)]


def test_an_operator_asks_for_it_as_for_any_table() -> None:
    shards = line("s1", "s2")
    again = shards.command(CommandKind.REREAD, "s2")
    assert asked(again) == [("s1", FixupKind.WHOLE), ("s2", FixupKind.WHOLE)]
    assert read(shards, "s1", "s2").outcome is Outcome.NOOP


def test_a_key_of_numbers_makes_all_of_it_anew() -> None:
    """The rows that wait are passed over with the others."""
    shards = line("s1")
    shards.alter("s1", MADE)
    made = shards.alter("s1", "ADD id INT NOT NULL AUTO_INCREMENT PRIMARY KEY")
    assert asked(made) == [("s1", FixupKind.RELOAD)]
    assert (len(made.reloads), shards.state.awaited) == (1, ())


def test_with_a_column_in_their_key_that_is_the_row_s_place() -> None:
    origin = replace(SHARD_COLUMN, in_keys=False)
    shards = SqlLine(Mode.OPTIMISTIC, "s1", create="a INT", origin=origin)
    assert asked(shards.alter("s1", MADE)) == [("s1", FixupKind.WHOLE)]
