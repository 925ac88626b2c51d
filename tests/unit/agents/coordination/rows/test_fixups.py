"""Rows that a schema change alters without row events, from the statement to the decision."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.handling.handlers import CoordinatorHandler, TrackerHandler
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin
from shardmerge.schemas.model.policies import ExistingRows, Mode
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import Decision, FixupKind, Outcome, StatementKind
from shardmerge.schemas.records.operator_commands import CommandKind
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange
from shardmerge.schemas.target.dialects.dialects import dialect_of
from tests.unit.agents.handling.test_handlers import CREATE, PIPELINE, Rows, log_record, statement
from tests.unit.agents.sql_line import SHARD_COLUMN, TARGET, SqlLine, shard_of

SOURCES = ["s1", "s2", "s3"]


def line(mode: Mode = Mode.OPTIMISTIC, create: str = "id INT PRIMARY KEY, a INT") -> SqlLine:
    return SqlLine(mode, "s1", "s2", "s3", create=create)


def asked(decision: Decision) -> list[tuple[str, tuple[str, ...]]]:
    """Which shards are read again, for which columns."""
    assert all(fixup.kind is FixupKind.SNAPSHOT for fixup in decision.fixups)
    return [(fixup.shard.source, fixup.columns) for fixup in decision.fixups]


@pytest.mark.parametrize(
    "definition", ["INT", "INT DEFAULT 5", "INT NOT NULL", "VARCHAR(9) NOT NULL", "TEXT NOT NULL"]
)
def test_nothing_is_read_again_when_all_shards_add_the_same(definition: str) -> None:
    rollout = line()
    decisions = [rollout.alter(s, f"ADD COLUMN c {definition}") for s in ("s1", "s2", "s3")]
    assert [d.fixups for d in decisions] == [(), (), ()]
    assert [d.warnings for d in decisions] == [(), (), ()]


@pytest.mark.parametrize(
    "definition", ["DATETIME DEFAULT CURRENT_TIMESTAMP", "VARCHAR(36) DEFAULT (UUID())"]
)
def test_each_shards_rows_are_read_again_after_a_volatile_default(definition: str) -> None:
    rollout = line()
    decisions = [rollout.alter(s, f"ADD COLUMN c {definition}") for s in ("s1", "s2", "s3")]
    assert [asked(d) for d in decisions] == [[(s, ("c",))] for s in ("s1", "s2", "s3")]
    (warning,) = decisions[0].warnings
    assert warning.startswith(
        "rows that s1/app.t had before may differ in c, they are read again: c: it was added with"
    )


@pytest.mark.parametrize("mode", Mode)
def test_the_route_may_accept_rows_that_differ(mode: Mode) -> None:
    rollout = line(mode)
    rollout.existing_rows = ExistingRows.ACCEPT
    decisions = [rollout.alter(s, "ADD COLUMN c CHAR(36) DEFAULT (UUID())") for s in SOURCES]
    found = [fixup for decision in decisions for fixup in decision.fixups]
    assert [(f.shard.source, f.kind) for f in found] == [(s, FixupKind.ACCEPT) for s in SOURCES]
    assert all(decision.pauses == () for decision in decisions)
    assert "they stay different until they are written again" in decisions[-1].warnings[0]


@pytest.mark.parametrize("mode", Mode)
def test_the_route_may_pause_shards_whose_rows_differ(mode: Mode) -> None:
    rollout = line(mode)
    rollout.existing_rows = ExistingRows.HOLD
    decisions = [rollout.alter(s, "ADD COLUMN c CHAR(36) DEFAULT (UUID())") for s in SOURCES]
    paused = [shard.source for decision in decisions for shard in decision.pauses]
    assert paused == SOURCES
    assert all(rollout.state.shards[shard_of(s)].paused for s in SOURCES)
    assert "the shard is paused: look at them, then resume it" in decisions[-1].warnings[0]
    assert rollout.alter("s1", "MODIFY c CHAR(30)").pauses == ()  # it is already
    assert rollout.command(CommandKind.RESUME, "s1").resumes == (shard_of("s1"),)


def test_a_second_shard_that_adds_another_zero_is_read_again() -> None:
    rollout = line()
    assert asked(rollout.alter("s1", "ADD COLUMN c INT")) == []
    decision = rollout.alter("s2", "ADD COLUMN c INT NOT NULL")
    assert asked(decision) == [("s2", ("c",))]
    assert decision.fixups[0].reason == "c: it was added, its rows have value 0, the target's NULL"


def test_a_column_that_is_dropped_and_comes_back_is_read_again() -> None:
    rollout = line()
    rollout.alter("s1", "DROP COLUMN a")
    assert asked(rollout.alter("s1", "ADD COLUMN a INT")) == [("s1", ("a",))]
    assert asked(rollout.alter("s2", "DROP COLUMN a, ADD COLUMN a INT")) == [("s2", ("a",))]


def test_a_drop_and_add_of_what_another_shard_renamed_is_read_again() -> None:
    rollout = line()
    assert asked(rollout.alter("s1", "RENAME COLUMN a TO b")) == []
    assert asked(rollout.alter("s2", "DROP COLUMN a, ADD COLUMN b INT")) == [("s2", ("b",))]


@pytest.mark.parametrize(
    ("actions", "columns"),
    [
        ("MODIFY a BIGINT", ()), ("MODIFY a INT NOT NULL", ("a",)),
        ("MODIFY a INT COMMENT 'x'", ()), ("ALTER COLUMN a SET DEFAULT 7", ()),
        ("ADD INDEX (a)", ()), ("RENAME COLUMN a TO b", ()),
    ],
)  # fmt: skip
def test_a_modify_is_read_again_when_it_may_change_values(
    actions: str, columns: tuple[str, ...]
) -> None:
    rollout = SqlLine(Mode.OPTIMISTIC, "s1", create="id INT PRIMARY KEY, a INT")
    decision = rollout.alter("s1", actions)
    assert asked(decision) == ([("s1", columns)] if columns else [])


def test_a_held_shard_is_read_again_by_the_decision_that_releases_it() -> None:
    rollout = line()
    held = rollout.alter("s1", "MODIFY a VARCHAR(20)")
    assert (held.outcome, held.fixups) == (Outcome.HOLD, ())
    again = rollout.alter("s1", "ADD COLUMN c DATETIME DEFAULT CURRENT_TIMESTAMP")
    assert (again.outcome, again.fixups) == (Outcome.HOLD, ())
    assert rollout.alter("s2", "MODIFY a VARCHAR(20)").outcome is Outcome.HOLD

    released = rollout.alter("s3", "MODIFY a VARCHAR(20)")
    assert released.released == (shard_of("s1"), shard_of("s2"))
    assert asked(released) == [("s1", ("a", "c")), ("s2", ("a",)), ("s3", ("a",))]


def test_a_shard_that_goes_back_is_read_again() -> None:
    rollout = line()
    rollout.alter("s1", "MODIFY a VARCHAR(20)")
    assert asked(rollout.alter("s1", "MODIFY a INT")) == [("s1", ("a",))]


def test_what_an_unreadable_statement_did_is_read_again() -> None:
    rollout = line()
    rollout.unreadable("s1")
    described = rollout.send("s1", rollout.schemas["s1"])
    assert described.released == (shard_of("s1"),)
    assert asked(described) == [("s1", ("id", "a"))]


def test_a_change_that_waits_for_the_lock_is_compared_when_it_is_executed() -> None:
    rollout = line(Mode.PESSIMISTIC)
    for source in ("s1", "s2"):
        assert rollout.alter(source, "ADD COLUMN c INT DEFAULT 5").fixups == ()
    last = rollout.alter("s3", "ADD COLUMN c INT DEFAULT 5")
    assert (len(last.released), last.fixups) == (2, ())

    for source in ("s1", "s2"):
        rollout.alter(source, "ADD COLUMN d DATETIME DEFAULT CURRENT_TIMESTAMP")
    last = rollout.alter("s3", "ADD COLUMN d DATETIME DEFAULT CURRENT_TIMESTAMP")
    assert asked(last) == [("s1", ("d",)), ("s2", ("d",)), ("s3", ("d",))]


def test_partitions_that_go_are_told_of() -> None:
    rollout = line()
    decision = rollout.send("s1", rollout.schemas["s1"], (), ("TRUNCATE PARTITION p0",))
    assert decision.fixups == ()
    assert decision.warnings[0].startswith("TRUNCATE PARTITION p0 on s1/app.t moves rows without")


def test_a_request_goes_out_with_the_decision() -> None:
    tracker, coordinator = TrackerHandler(PIPELINE), CoordinatorHandler(PIPELINE)
    tables, states = Rows(), Rows()
    sends = []
    for offset, ddl in enumerate((CREATE, "ALTER TABLE tbl00 ADD c TIMESTAMP DEFAULT NOW()")):
        (change,) = tables.take(tracker(tables, statement(ddl, offset))).sends
        effects = states.take(coordinator(states, log_record(change.value, offset)))
        sends.append(effects.sends)
    assert [len(answers) for answers in sends] == [2, 3]
    sent, _, request = sends[1]
    decision = codec.decode(sent.value)
    assert isinstance(decision, Decision)
    shard = ShardId("s1", "shop", "tbl00")
    assert [(f.shard, f.kind, f.columns) for f in decision.fixups] == [
        (shard, FixupKind.SNAPSHOT, ("c",))
    ]
    assert (request.topic, request.key) == ("p.signals", b"s1")
    assert json.loads(request.value) == {
        "id": "s1@1.0/shop.tbl00",
        "type": "execute-snapshot",
        "data": {"type": "incremental", "data-collections": [r"\Qshop.tbl00\E"]},
    }


def test_a_column_that_the_target_gets_late_is_read_again() -> None:
    rollout = line()
    rollout.command(CommandKind.DISABLE)
    assert asked(rollout.alter("s1", "ADD COLUMN c INT")) == []
    assert asked(rollout.alter("s2", "ADD COLUMN c INT")) == []
    decision = rollout.command(CommandKind.ENABLE)
    assert asked(decision) == [("s1", ("c",)), ("s2", ("c",))]
    assert asked(rollout.alter("s3", "ADD COLUMN c INT")) == []


def test_a_skipped_column_is_read_again_when_it_counts_again() -> None:
    rollout = line()
    rollout.alter("s1", "MODIFY a VARCHAR(9), ADD COLUMN c INT")
    skipped = rollout.command(CommandKind.SKIP, "s1")
    assert asked(skipped) == []
    assert asked(rollout.alter("s2", "ADD COLUMN c INT")) == []
    assert asked(rollout.alter("s1", "MODIFY c INT COMMENT 'again'")) == [("s1", ("c",))]
    assert asked(rollout.alter("s1", "MODIFY a INT")) == [("s1", ("a",))]


def test_a_refused_command_asks_for_nothing() -> None:
    rollout = line()
    decision = rollout.command(CommandKind.SKIP, "s1")
    assert (decision.outcome, decision.fixups) == (Outcome.REFUSED, ())


def test_a_column_that_a_held_shard_dropped_and_adds_again_later_is_read_again() -> None:
    rollout = line()
    rollout.alter("s2", "ADD COLUMN x DATE")
    assert rollout.alter("s1", "ADD COLUMN x INT").outcome is Outcome.HOLD
    rollout.alter("s1", "DROP COLUMN a")
    released = rollout.alter("s1", "DROP COLUMN x")
    assert [release.shard for release in released.releases] == [shard_of("s1")]

    again = rollout.alter("s1", "ADD COLUMN a INT")

    assert asked(again) == [("s1", ("a",))]


def test_a_held_shard_is_read_again_for_what_the_target_got_late() -> None:
    rollout = line()
    rollout.alter("s2", "ADD COLUMN x DATE")
    rollout.command(CommandKind.DISABLE)
    rollout.alter("s1", "ADD COLUMN c INT")
    assert rollout.alter("s1", "ADD COLUMN x INT").outcome is Outcome.HOLD

    assert asked(rollout.command(CommandKind.ENABLE)) == []

    assert asked(rollout.alter("s1", "DROP COLUMN x")) == [("s1", ("c",))]


def test_what_a_held_shard_is_to_be_read_again_for_is_stored() -> None:
    """The change of another shard tells; a worker that is started again must know of it."""
    tracker, tables, states = TrackerHandler(PIPELINE), Rows(), Rows()
    requests = []
    for offset, ddl in enumerate((
        "CREATE TABLE tbl00 (id INT PRIMARY KEY, e ENUM('a'))",
        "CREATE TABLE tbl01 (id INT PRIMARY KEY, e ENUM('a', 'b'))",
        "ALTER TABLE tbl01 ADD x DATE",
        "ALTER TABLE tbl00 ADD x INT",
        "ALTER TABLE tbl01 DROP e, ADD e ENUM('a', 'c')",
        "ALTER TABLE tbl00 DROP x",
    )):  # fmt: skip
        (change,) = tables.take(tracker(tables, statement(ddl, offset))).sends
        effects = states.take(
            CoordinatorHandler(PIPELINE)(states, log_record(change.value, offset))
        )
        requests.append([s.value for s in effects.sends if s.topic == "p.signals"])
    assert [len(asked_for) for asked_for in requests] == [0, 0, 0, 0, 0, 1]
    assert b"tbl00" in requests[-1][0]


@pytest.mark.parametrize("origin", [NO_ORIGIN, SHARD_COLUMN])
def test_values_that_a_shard_left_go_before_their_column_gets_narrower(origin: Origin) -> None:
    rollout = SqlLine(
        Mode.OPTIMISTIC, *SOURCES, create="id INT PRIMARY KEY, a INT DEFAULT 3", origin=origin
    )
    rollout.alter("s1", "MODIFY a BIGINT DEFAULT 3")
    gone = rollout.alter("s1", "DROP a")
    (fixup,) = gone.fixups
    assert (fixup.shard, fixup.columns) == (shard_of("s1"), ("a",))
    assert fixup.reason.startswith(
        "a: it has no such column any more, and its rows in the target may hold old"
    )
    narrower = "ALTER TABLE `merged`.`t` MODIFY COLUMN `a` int DEFAULT '3'"
    if origin is NO_ORIGIN:
        assert fixup.kind is FixupKind.SNAPSHOT
        assert [s.sql for s in gone.statements] == [narrower]
    else:
        assert fixup.kind is FixupKind.UPDATE
        clear, then = gone.statements
        assert clear.sql.startswith("UPDATE `merged`.`t` SET `a` = 3 WHERE `_shard` = ")
        # Late rows of the shard can have its values still: it waits for them as the debt does.
        assert (clear.kind, clear.shard) == (StatementKind.ROWS, None)
        assert (then.sql, then.kind) == (narrower, StatementKind.CONTRACTING)


def test_what_add_column_put_in_needs_no_look_when_the_column_gets_narrower() -> None:
    rollout = line()
    rollout.alter("s1", "ADD c INT")
    rollout.alter("s2", "ADD c BIGINT")
    assert rollout.alter("s2", "MODIFY c INT").fixups[0].shard == shard_of("s2")
    assert [f.shard for d in rollout.decisions for f in d.fixups] == [shard_of("s2")]


@pytest.mark.parametrize("mode", [Mode.OPTIMISTIC, Mode.PESSIMISTIC])
@pytest.mark.parametrize("again", ["INT AS (a + 1)", "INT AS (a + 2)", "INT AS (a + 2) STORED"])
def test_a_column_that_the_target_computes_is_never_read_again(again: str, mode: Mode) -> None:
    shards = SqlLine(mode, "s1", "s2", create="id INT PRIMARY KEY, a INT, g INT AS (a + 1)")

    for source in ("s1", "s2"):
        shards.alter(source, f"DROP COLUMN g, ADD COLUMN g {again}")

    assert not shards.held
    assert not any(decision.fixups for decision in shards.decisions)
    shards.alter("s1", "DROP COLUMN a, ADD COLUMN a INT, DROP COLUMN g, ADD COLUMN g INT AS (a)")
    decision = shards.alter(
        "s2", "DROP COLUMN a, ADD COLUMN a INT, DROP COLUMN g, ADD COLUMN g INT AS (a)"
    )
    assert not shards.held
    fixups = [*shards.decisions[-2].fixups, *decision.fixups]
    assert {column for fixup in fixups for column in fixup.columns} == {"a"}


def test_a_computed_column_that_an_iceberg_table_has_from_rows_is_read_again() -> None:
    iceberg = dialect_of("iceberg", "")
    shards = SqlLine(Mode.OPTIMISTIC, "s1", create="id INT PRIMARY KEY, a INT, g INT AS (a + 1)")
    before = shards.schemas["s1"]
    shards.alter("s1", "DROP COLUMN g, ADD COLUMN g INT AS (a + 2)")
    created = SchemaChange(
        ChangeId("s1", 1), TARGET, shard_of("s1"), SourcePosition(0, "b", 10, 0), None, before,
        (), (), "",
    )  # fmt: skip
    lineage = tuple(Lineage(name, "" if name == "g" else name) for name in ("id", "a", "g"))
    after = shards.schemas["s1"]
    changed = replace(created, id=ChangeId("s1", 2), before=before, after=after, lineage=lineage)
    state = coordinator.decide(coordinator.initial(TARGET), created, iceberg).state

    decision = coordinator.decide(state, changed, iceberg).decision

    assert decision is not None
    assert [fixup.columns for fixup in decision.fixups] == [("g",)]
