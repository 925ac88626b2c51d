"""Why a shard stands, for whom it waits, and the ways out."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.cli.views.explanation import explanation
from shardmerge.cli.views.shapes import AgentsState, Cause
from shardmerge.cli.views.text import plain_lines
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.schemas.records.decisions import StatementKind
from shardmerge.schemas.records.operator_commands import CommandKind
from shardmerge.schemas.records.progress import (
    FailureProgress,
    ShardProgress,
    SinkProgress,
    StatementProgress,
)
from tests.recorded import Recorded

from .pictures import ONE, TARGET, TWO, asked, conflicting, locked, recorded, reported


def kinds(cause: Cause) -> list[str]:
    """The commands among the ways out; "" is DDL."""
    return [way.command.split(" ")[2] if way.command else "" for way in cause.ways]


def test_a_shard_whose_rows_flow_has_no_cause() -> None:
    found = explanation(asked(recorded(), ONE))
    assert (found.state, found.causes, found.waiting, found.parked) == ("flows", (), (), 0)


def test_a_conflict_names_the_other_side_and_only_commands_that_would_be_obeyed() -> None:
    progress = SinkProgress(TARGET, 2, 5, shards=(ShardProgress(TWO, 1, "held", parked=7),))
    found = explanation(asked(reported(conflicting(), progress), TWO))

    assert (found.state, found.parked) == ("held", 7)
    (cause,) = found.causes
    assert (cause.kind, cause.others, cause.version) == ("hold", (str(ONE),), 3)
    assert cause.code == "SM-1201"
    assert cause.since.startswith("2023-11-14T22:13:20.")
    assert cause.position == "binlog.000001:150"
    assert kinds(cause) == ["", "skip", "leave", "replace"]
    assert cause.ways[1].command == (
        "shardmerge command skip --pipeline 'my pipeline.toml' --shard s2/shop.tbl2 "
        "--target merged.tbl"
    )
    assert cause.ways[1].does.startswith("the target stays as it is; released: s2/shop.tbl2.")


def test_a_shard_that_lacks_the_column_is_no_side_of_a_conflict_about_it() -> None:
    made = Recorded(3, "optimistic")
    for source, table in (("s1", "tbl1"), ("s2", "tbl2"), ("s2", "tbl3")):
        made.execute(source, f"CREATE TABLE {table} (id INT PRIMARY KEY)", snapshot=True)
    made.execute("s1", "ALTER TABLE tbl1 ADD a INT")
    made.execute("s2", "ALTER TABLE tbl2 ADD a DATE")

    (cause,) = explanation(asked(made, TWO)).causes

    assert cause.others == (str(ONE),)


def test_a_shard_that_waits_for_the_lock_names_those_that_have_not_made_its_change() -> None:
    (cause,) = explanation(asked(locked(), TWO)).causes
    assert (cause.kind, cause.others) == ("lock", (str(ONE),))
    assert kinds(cause) == [
        "", "skip", "unlock-execute", "unlock-discard", "leave", "set-mode", "replace",
    ]  # fmt: skip
    assert cause.ways[2].does == (
        "the target gets: ALTER TABLE `merged`.`tbl` ADD COLUMN `b` int; released: s2/shop.tbl2"
    )
    # And the other one is told who waits for it.
    (waiting,) = explanation(asked(locked(), ONE)).waiting
    assert waiting.startswith("s2/shop.tbl2 (waits for the DDL lock of merged.tbl: ADD COLUMN `b`")


def test_a_statement_that_could_not_be_read_is_ended_by_set_schema() -> None:
    made = recorded(("s2", "ALTER TABLE tbl2 FROBNICATE a"))
    (cause,) = explanation(asked(made, TWO)).causes
    assert cause.kind == "unreadable"
    assert "set-schema" in kinds(cause)
    assert "skip" not in kinds(cause), "nobody knows what would be skipped"


def test_a_pause_tells_who_paused() -> None:
    made = recorded()
    made.command(CommandKind.PAUSE, "s1/tbl1")
    (cause,) = (found := explanation(asked(made, ONE))).causes
    assert (found.state, cause.kind, cause.what) == ("paused", "pause", "paused by anna")
    assert kinds(cause) == ["resume", "leave"]


def test_rows_that_wait_for_a_statement_tell_what_that_waits_for_in_turn() -> None:
    made = recorded(("s1", "ALTER TABLE tbl1 ADD b INT"))
    detail = "waits for rows of s2/shop.tbl2 up to binlog.000001:9"
    progress = SinkProgress(
        TARGET, 2, 5,
        (StatementProgress(3, 0, "ALTER …", StatementKind.EXPANDING, "waiting", detail, 2_000),),
        (ShardProgress(ONE, 1, "waits for the target to reach version 3", since_ms=1_000,
                       parked=4),),
    )  # fmt: skip
    found = explanation(asked(reported(made, progress), ONE))

    assert (found.state, found.parked) == ("waits", 4)
    rows, statement = found.causes
    assert (rows.kind, rows.others, rows.since) == (
        "rows", ("statement 3.0",), "1970-01-01T00:00:01.000Z",
    )  # fmt: skip
    assert (statement.kind, statement.others) == ("statement", (str(TWO),))
    assert detail in statement.what
    (waiting,) = explanation(asked(made, TWO)).waiting
    assert waiting == f"statement 3.0 (waiting): ALTER …: {detail}"


def test_a_row_that_the_target_lacks_is_passed_over_by_a_rebuild() -> None:
    waits = ShardProgress(ONE, 1, "the target refuses the row", hint="see", code="SM-3108")
    found = explanation(
        asked(reported(recorded(), SinkProgress(TARGET, 2, 5, shards=(waits,))), ONE)
    )
    (cause,) = found.causes
    assert [way.command for way in cause.ways] == [
        "",
        "shardmerge rebuild merged.tbl --pipeline 'my pipeline.toml'",
        "shardmerge command reread --shard s1/shop.tbl1 --pipeline 'my pipeline.toml'",
    ]
    other = replace(waits, code="SM-1515")
    found = explanation(
        asked(reported(recorded(), SinkProgress(TARGET, 2, 5, shards=(other,))), ONE)
    )
    assert [way.command for way in found.causes[0].ways] == [""]


def test_a_statement_that_meets_a_change_by_hand_tells_both_ways_out() -> None:
    made = recorded(("s1", "ALTER TABLE tbl1 ADD b INT"))
    refused = StatementProgress(
        3, 0, "ALTER …", StatementKind.EXPANDING, "refused", "met", code="SM-6806"
    )
    waits = ShardProgress(ONE, 1, "waits for the target to reach version 3; met", parked=4)
    progress = SinkProgress(TARGET, 2, 5, (refused,), (waits,))
    found = explanation(asked(reported(made, progress), ONE))

    [statement] = [cause for cause in found.causes if cause.kind == "statement"]
    assert [way.command.split()[:4] for way in statement.ways] == [
        ["shardmerge", "drift", "heal", str(TARGET)],
        ["shardmerge", "drift", "adopt", str(TARGET)],
    ]


def test_what_stops_everything_is_a_cause_too() -> None:
    failure = FailureProgress("the target is away", "start it", "s1.shop.tbl1/0", 3, 1_000)
    question = asked(reported(recorded(), SinkProgress(TARGET, 2, 5, failure=failure)), ONE)
    connectors = (
        ConnectorState("s1", "p.s1", "FAILED", "no binlog"),
        ConnectorState("s2", "p.s2", "FAILED"),
    )
    question = replace(
        question,
        picture=replace(question.picture, connectors=connectors, agents=AgentsState(0, 2)),
    )

    failed, connector, agents = explanation(question).causes

    assert failed.what == "rows of s1.shop.tbl1/0 cannot be applied, 3 tries: the target is away"
    assert connector.what == "connector p.s1 is FAILED: no binlog; no new rows come"
    assert (
        connector.ways[0].command == "shardmerge connect restart s1 --pipeline 'my pipeline.toml'"
    )
    assert agents.kind == "agents"


def test_a_shard_that_left_has_left() -> None:
    made = recorded()
    made.command(CommandKind.LEAVE, "s1/tbl1")
    assert explanation(asked(made, ONE)).state == "left"


def test_what_did_not_answer_is_told() -> None:
    question = asked(recorded(), ONE)
    away = replace(question.picture, unanswered=("Kafka Connect is away",))
    found = explanation(replace(question, picture=away))
    assert (found.causes, found.unanswered) == ((), ("Kafka Connect is away",))
    assert list(plain_lines(found))[-1] == "not known: Kafka Connect is away"
