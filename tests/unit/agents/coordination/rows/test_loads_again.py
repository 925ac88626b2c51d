"""An operator orders that the sink loads a shard again: what is decided, and what is refused."""

from __future__ import annotations

from shardmerge.schemas.model.policies import Mode
from shardmerge.schemas.records.decisions import Decision, FixupKind, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.unit.agents.sql_line import BASE, SHARD_COLUMN, SqlLine, in_conflict, shard_of


def order(shards: SqlLine, source: str = "s1") -> Decision:
    return shards.command(CommandKind.LOAD_AGAIN, source)


def test_only_the_rows_of_the_one_shard_go() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE, origin=SHARD_COLUMN)
    place = shards.decisions[1].position

    answer = order(shards)

    assert answer.outcome is Outcome.NOOP
    assert answer.statements == ()
    assert [(fixup.shard, fixup.kind) for fixup in answer.fixups] == [
        (shard_of("s1"), FixupKind.LOAD)
    ]
    assert [(r.shard, r.position, r.began_ms) for r in answer.reloads] == [
        (shard_of("s1"), place, 0)
    ]
    assert answer.warnings == (
        "s1/app.t: they are taken out of the target, and the sink reads the table: an operator "
        "asked for it",
    )


def test_without_origin_columns_it_is_refused_and_rebuild_is_named() -> None:
    answer = order(SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE))
    assert (answer.outcome, answer.code, answer.reloads) == (Outcome.REFUSED, "SM-1641", ())
    assert "shardmerge rebuild merged.t" in answer.hint


def test_a_shard_that_has_always_been_alone_needs_no_origin_columns() -> None:
    alone = SqlLine(Mode.OPTIMISTIC, "s1", create=BASE)
    assert order(alone).reloads

    left = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    left.drop("s0")
    assert order(left).code == "SM-1641", "rows of the shard that left are still there"


def test_a_shard_whose_rows_do_not_flow_is_not_loaded_again() -> None:
    assert order(in_conflict()).code == "SM-1645"

    keyless = SqlLine(Mode.OPTIMISTIC, "s1", create="a INT")
    keyless.alter("s1", "ADD COLUMN c DATETIME DEFAULT CURRENT_TIMESTAMP")
    assert order(keyless).code == "SM-1645"

    unknown = SqlLine(Mode.OPTIMISTIC, create=BASE)
    unknown.unreadable("s1")
    assert order(unknown).code == "SM-1305"
    assert order(unknown, "s9").code == "SM-1303"
