"""What ``shardmerge status`` tells of a pipeline, as values and as plain lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.cli.views.shapes import AgentsState, TargetServer, ValidationStatus
from shardmerge.cli.views.status import pipeline_status
from shardmerge.cli.views.text import plain_lines
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.records.decisions import StatementKind
from shardmerge.schemas.records.drift import Difference, DriftKind
from shardmerge.schemas.records.operator_commands import CommandKind
from shardmerge.schemas.records.progress import (
    FailureProgress,
    ShardProgress,
    SinkProgress,
    StatementProgress,
)
from shardmerge.schemas.records.validations import TargetValidation
from tests.recorded import Recorded

from .pictures import (
    AT_MS,
    ONE,
    TARGET,
    TWO,
    compared,
    conflicting,
    locked,
    log,
    picture,
    recorded,
    reported,
)


@pytest.mark.parametrize("hint", ["start it", ""])
def test_rows_that_cannot_be_applied_are_told(hint: str) -> None:
    failure = FailureProgress("the target is away", hint, "s1.app.a/0 and 2 more", 1_200, 1_000)
    made = reported(recorded(), SinkProgress(TARGET, 1, 5, ts_ms=AT_MS, failure=failure))

    status = pipeline_status(picture(made))

    assert list(plain_lines(status)) == [
        "as of 2023-11-14 22:15:00 UTC",
        "merged.tbl: version 2, executed up to 1, 5 rows applied",
        "  the sink reported last at 2023-11-14 22:15:00 UTC",
        "  rows of s1.app.a/0 and 2 more: 1,200 tries failed since 1970-01-01 00:00:01 UTC: the "
        "target is away",
        *([f"    {hint}"] if hint else []),
        "  s1/shop.tbl1: flows",
        "  s2/shop.tbl2: flows",
        "fault: merged.tbl: rows cannot be applied: the target is away",
    ]


def test_rows_that_were_written_over_others_and_rows_that_wait_are_told() -> None:
    progress = SinkProgress(
        TARGET, 2, 5,
        shards=(ShardProgress(ONE, 9),
                ShardProgress(TWO, 9, "waits for version 2", parked=3, overwritten=1_234)),
    )  # fmt: skip

    status = pipeline_status(picture(reported(recorded(), progress)))

    assert status.faults == ()
    assert list(plain_lines(status))[2:] == [
        "  s1/shop.tbl1: flows",
        "  s2/shop.tbl2: waits, 3 rows at most: waits for version 2",
        "    1,234 of its rows, or more, were written over rows with the",
        "    same primary key: see docs/how-to/origin-columns.md",
    ]


def test_a_held_shard_is_a_fault_with_the_time_of_its_decision() -> None:
    (target,) = (found := pipeline_status(picture(conflicting()))).targets

    held = target.shards[1]
    assert (held.shard, held.state, held.version) == (str(TWO), "held", 3)
    assert held.since.startswith("2023-11-14T22:13:20.")
    assert found.faults == (
        "merged.tbl: s2/shop.tbl2 is held: SM-1201: column a, type: date and int: their values "
        "are of different kinds",
    )


def test_who_paused_a_shard_is_told_until_it_is_resumed() -> None:
    made = recorded()
    made.command(CommandKind.PAUSE, "s1/tbl1")
    (target,) = pipeline_status(picture(made)).targets
    assert [(s.state, s.by) for s in target.shards] == [("paused", "anna"), ("flows", "")]
    made.command(CommandKind.RESUME, "s1/tbl1")
    (target,) = pipeline_status(picture(made)).targets
    assert [(s.state, s.by) for s in target.shards] == [("flows", ""), ("flows", "")]


def test_a_shard_that_left_is_not_told() -> None:
    made = recorded()
    made.command(CommandKind.LEAVE, "s1/tbl1")
    (target,) = pipeline_status(picture(made)).targets
    assert [s.shard for s in target.shards] == [str(TWO)]


def test_what_servers_say_is_told_and_what_is_wrong_is_a_fault() -> None:
    found = replace(
        picture(recorded()),
        connectors=(
            ConnectorState("s1", "p.s1", "RUNNING"),
            ConnectorState("s2", "p.s2", "FAILED", "the binlog is gone"),
        ),
        agents=AgentsState(0, 3),
        target_server=TargetServer("mysql", "target:1", error="timed out"),
        unanswered=("Kafka Connect is away",),
    )

    status = pipeline_status(found)

    assert status.faults == (
        "Kafka Connect is away",
        "connector p.s2 is FAILED: the binlog is gone",
        "no agents' worker runs; 3 records are undecided",
        "the target's server target:1 does not answer: timed out",
    )
    assert list(plain_lines(status))[1:5] == [
        "connector p.s1: RUNNING",
        "connector p.s2: FAILED: the binlog is gone",
        "agents: workers 0, undecided records 3",
        "target server target:1 (mysql): timed out",
    ]


def test_a_refused_statement_is_a_fault() -> None:
    open_ = StatementProgress(2, 0, "ALTER …", StatementKind.CONTRACTING, "refused", "why", 1_000)
    made = reported(recorded(), SinkProgress(TARGET, 2, 0, (open_,), ts_ms=AT_MS))

    status = pipeline_status(picture(made))

    assert status.faults == ("merged.tbl: statement 2.0 is refused",)
    assert "  refused: ALTER … why" in list(plain_lines(status))


def test_a_sink_that_reports_no_more_is_a_fault() -> None:
    made = reported(recorded(), SinkProgress(TARGET, 2, 5, ts_ms=AT_MS - 180_000))
    assert pipeline_status(picture(made)).faults == ()

    made = reported(recorded(), SinkProgress(TARGET, 2, 5, ts_ms=AT_MS - 180_001))
    assert pipeline_status(picture(made)).faults == (
        "merged.tbl: SM-6723: the sink has not reported it since 2023-11-14 22:11:59 UTC",
    )


def test_a_sink_that_never_reported_is_a_fault_after_some_minutes() -> None:
    new = picture(recorded())
    assert pipeline_status(new).faults == ()
    (fault,) = pipeline_status(replace(new, at_ms=AT_MS + 180_000)).faults
    assert fault == "merged.tbl: SM-6723: the sink has not reported it yet"


def test_a_target_whose_schema_stays_tells_who_said_so() -> None:
    made = recorded()
    made.command(CommandKind.DISABLE)
    (target,) = (found := pipeline_status(picture(made))).targets
    assert target.disabled_by == "anna"
    assert target.disabled_since.startswith("2023-11-14T22:13:20.")
    assert "  its schema stays as it is: disabled by anna since 2023-11-14 22:13:20 UTC" in list(
        plain_lines(found)
    )
    made.command(CommandKind.DISABLE)  # refused: it is disabled already
    assert pipeline_status(picture(made)).targets[0].disabled_since == target.disabled_since
    made.command(CommandKind.ENABLE)
    (target,) = pipeline_status(picture(made)).targets
    assert (target.disabled_by, target.disabled_since) == ("", "")


def test_an_open_statement_says_why_the_target_gets_it() -> None:
    made = recorded()
    sql = picture(made).of_target(TARGET)[1].decision.statements[0].sql
    open_ = tuple(
        StatementProgress(
            1, ordinal, text, StatementKind.EXPANDING, "waiting", "x", 1_000, "SM-1622"
        )
        for ordinal, text in ((0, sql), (-1, "DELETE …"))
    )
    status = pipeline_status(
        picture(reported(made, SinkProgress(TARGET, 0, 0, open_, ts_ms=1_000)))
    )
    own, other = status.targets[0].open
    assert (own.why_code, own.why) == ("SM-1901", "the target is new")
    assert (other.why_code, other.why) == ("", ""), "no decision has it"
    assert "    because SM-1901: the target is new" in list(plain_lines(status))


def lived(*commands: tuple[CommandKind, str, str]) -> Recorded:
    made = conflicting()
    made.execute("s1", "ALTER TABLE tbl1 ADD COLUMN d INT")
    for kind, shard, argument in commands:
        made.command(kind, shard, argument)
    made.execute("s1", "ALTER TABLE tbl1 ADD COLUMN e INT")
    return made


@pytest.mark.parametrize(
    "made",
    [
        recorded(),
        conflicting(),
        locked(),
        lived(),
        lived((CommandKind.PAUSE, "s1/tbl1", ""), (CommandKind.PAUSE, "s2/tbl2", "")),
        lived((CommandKind.SKIP, "s2/tbl2", ""), (CommandKind.DISABLE, "", "")),
        lived((CommandKind.DISABLE, "", ""), (CommandKind.ENABLE, "", "")),
        lived((CommandKind.LEAVE, "s2/tbl2", "")),
        lived((CommandKind.LEAVE, "s1/tbl1", "")),
        lived((CommandKind.SET_MODE, "", "pessimistic")),
    ],
)
def test_the_agents_table_says_what_all_decisions_say_and_decodes_few(made: Recorded) -> None:
    found = picture(made)
    state = log(made).state
    from_table = pipeline_status(found, {TARGET: state})
    decoded = [each for each in found.decided if each._decision is not None]
    assert from_table == pipeline_status(picture(made))
    # Who paused or disabled is looked for from the latest decision back.
    by_somebody = any(shard.paused for shard in state.shards.values()) or not state.propagates
    assert not decoded or by_somebody or all(d.source == "p.commands" for d in decoded)


def test_what_was_changed_by_hand_is_told_and_a_fault_if_it_needs_somebody() -> None:
    drift = (
        Difference("column:c", DriftKind.REFUSES, "", "`c` int NOT NULL", 2_000, 1_000),
        Difference("index:i", DriftKind.HARMLESS, "", "INDEX `i` (`a`)", 2_000),
    )
    status = pipeline_status(picture(reported(recorded(), SinkProgress(TARGET, 2, 0, drift=drift))))

    [target] = status.targets
    assert [(each.subject, each.kind, each.before) for each in target.drift] == [
        ("column:c", "refuses", "1970-01-01T00:00:01.000Z"),
        ("index:i", "harmless", ""),
    ]
    assert status.faults == ("merged.tbl: its table was changed by hand: column:c (SM-6802)",)
    assert (
        "  index:i differs: SM-6801: decided is nothing, the table has INDEX `i` (`a`); seen since "
        "1970-01-01 00:00:02 UTC"
    ) in plain_lines(status)


def test_what_a_comparison_found_is_told_and_a_fault_if_rows_differ() -> None:
    made = reported(recorded(), SinkProgress(TARGET, 2, 0))
    assert pipeline_status(picture(made)).targets[0].validation is None
    found = TargetValidation(
        TARGET, 2, 1_000, 3_000, True, 9, 2, missing=1, obstacles=1, since_ms=2_000
    )
    status = pipeline_status(picture(compared(made, found)))
    [target] = status.targets
    assert target.validation == ValidationStatus(
        "differs",
        "1970-01-01T00:00:03.000Z",
        1,
        "1 row differs: 1 missing",
        "1970-01-01T00:00:02.000Z",
        ("1 shard could not be compared",),
    )
    assert status.faults == ("merged.tbl: SM-4414: 1 row differs: 1 missing",)
    assert (
        "  compared with its shards at 1970-01-01 00:00:03 UTC: 1 row differs: 1 missing; known "
        "since 1970-01-01 00:00:02 UTC; 1 shard could not be compared"
    ) in plain_lines(status)


def test_after_a_tombstone_no_comparison_is_known() -> None:
    found = TargetValidation(TARGET, 2, 1_000, 3_000, True, 9, 2, missing=1)
    made = compared(reported(recorded(), SinkProgress(TARGET, 2, 0)), found)
    made.append(topics.validations(made.pipeline).name, 0, found.record_key.encode(), None)
    status = pipeline_status(picture(made))
    assert (status.targets[0].validation, status.faults) == (None, ())


def test_a_target_whose_rows_are_equal_or_that_was_cut_over_has_no_fault() -> None:
    equal = TargetValidation(TARGET, 2, 1_000, 3_000, True, 9, 2)
    made = compared(reported(recorded(), SinkProgress(TARGET, 2, 0)), equal)
    status = pipeline_status(picture(made))
    assert status.faults == ()
    assert (
        "  compared with its shards at 1970-01-01 00:00:03 UTC: all rows are equal"
    ) in plain_lines(status)
    closed = ShardProgress(ONE, 5, "the target was cut over", code="SM-1617")
    made = reported(recorded(), SinkProgress(TARGET, 2, 0, shards=(closed,)))
    status = pipeline_status(picture(compared(made, replace(equal, missing=1))))
    assert status.faults == ()


@pytest.mark.parametrize(
    ("writer", "standbys", "line"),
    [
        ("10.0.0.5", (), "sink: on 10.0.0.5"),
        ("10.0.0.5", ("10.0.0.6", "10.0.0.7"), "sink: on 10.0.0.5, standbys 10.0.0.6, 10.0.0.7"),
        ("", ("10.0.0.6",), "sink: on no host, standbys 10.0.0.6"),
    ],
)
def test_the_sinks_of_a_pipeline_are_told(
    writer: str, standbys: tuple[str, ...], line: str
) -> None:
    server = TargetServer("mysql", "t:3306", "8.0.15", 3, writer=writer, standbys=standbys)
    status = pipeline_status(replace(picture(recorded()), target_server=server))
    assert line in plain_lines(status)
