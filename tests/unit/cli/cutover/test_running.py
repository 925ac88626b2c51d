"""A call carries out its steps, keeps what they led to, and goes on where another one ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.cli.cutover.foreseen import Proved
from shardmerge.cli.cutover.record import CutoverRecord, Tidied
from shardmerge.cli.cutover.report import lines, progress_line, report_of
from shardmerge.cli.cutover.running import CutoverRun
from shardmerge.cli.cutover.seen import Act, Reason, Seen, SourceSeen, Step, Wishes
from shardmerge.cli.validation.report_shapes import RowDifference, ValidatedTarget
from shardmerge.cli.validation.target_run import Limits
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.validation.proofs import NO_PROOF, Proof, ProvenOffset

TARGET = TargetTable("merged", "t")
EQUAL = ValidatedTarget(
    str(TARGET), 2, True, "", ("s1/app.t",), ("id",), ("id",), 7, 1, 9, (), 0, (), 0, ()
)
BY_SERVER = Wishes(read_only=True, confirmed=True)
PROOF = Proof((ProvenOffset("s1.app.t", 0, 5),), 2, "x")
DEFAULT = Tidied("DROP DEFAULT", "SET DEFAULT")


@dataclass
class World:
    """One source, and a target's server that keeps the record."""

    stored: CutoverRecord = field(default_factory=CutoverRecord)
    closed: bool = False
    read_only: bool = False
    untidy: tuple[Tidied, ...] = (DEFAULT,)
    written: tuple[str, ...] = ()
    refuses: bool = False
    is_silent: bool = False
    executed: list[str] = field(default_factory=list)

    @property
    def store(self) -> Any:
        def mark(closed: bool) -> None:
            self.closed = closed

        def forget() -> None:
            self.stored = CutoverRecord()

        return SimpleNamespace(close=lambda: mark(True), reopen=lambda: mark(False), forget=forget)

    @property
    def sources(self) -> World:
        return self

    def keep(self, record: CutoverRecord) -> None:
        self.stored = record

    def execute(self, what: str | Step) -> None:
        if isinstance(what, str):
            self.executed.append(what)
            self.untidy = () if what == DEFAULT.sql else (DEFAULT,)
            return
        if self.refuses:
            raise StackError("refused", code="SM-6718")
        self.executed += what.statements
        self.read_only = what.statements[0].endswith("ON")

    def silent_sink(self) -> tuple[Reason, ...]:
        return (Reason("SM-6723", "silent"),) if self.is_silent else ()

    def look(self, *, back: bool = False, unchanged: bool = False, fresh: bool = False) -> Seen:
        source = SourceSeen(
            "s1",
            read_only=self.read_only,
            before=(("super_read_only", "ON" if self.read_only else "OFF"),),
            written=self.written if self.stored.noted else (),
        )
        return Seen(
            self.stored,
            self.closed,
            (source,),
            untidy=self.untidy,
            unchanged=unchanged,
            fresh=fresh,
        )


class Run(CutoverRun):
    """A call whose comparisons and waits end as they are told to."""

    def __init__(self, world: World, wishes: Wishes = BY_SERVER) -> None:
        self.said: list[str] = []
        self.report = EQUAL
        self.passes: list[bool] = []  # the next answers; True behind them
        self.proof = NO_PROOF
        self.given: list[tuple[Act, Proof]] = []
        super().__init__(
            cast(Any, None),
            TARGET,
            cast(Any, world),
            cast(Any, world),
            wishes=wishes,
            limits=Limits(patience_s=1),
            by="olga",
            say=lambda step: self.said.append(progress_line(str(TARGET), step)),
        )

    def _compared(self, act: Act, proof: Proof) -> tuple[ValidatedTarget, Proved]:
        self.given.append((act, proof))
        changed_only = bool(proof) and act is not Act.COMPARE_BACK
        return self.report, Proved(self.report.rows, self.proof, changed_only=changed_only)

    def _passing(self) -> Any:
        return SimpleNamespace(
            note=lambda: {"s1": SourcePosition(0, "f", 9, 0)},
            passed=lambda noted: self.passes.pop(0) if self.passes else True,
        )


def test_a_call_opens_the_target_and_another_one_takes_it_back() -> None:
    world = World()
    ended = Run(world).run(back=False)
    assert ended.reasons == ()
    assert [step.name for step in ended.steps] == [
        "compare", "read-only", "note", "catch-up", "prove", "close", "tidy", "open",
    ]  # fmt: skip
    assert (world.stored.by, world.stored.rows, bool(world.stored.opened)) == ("olga", 7, True)
    assert world.executed == ["SET GLOBAL super_read_only = ON", "DROP DEFAULT"]
    assert Run(world).run(back=False).steps == ()

    back = Run(world).run(back=True)
    assert [step.name for step in back.steps] == [
        "compare-back", "turn-back", "restore", "reopen", "writable", "forget",
    ]  # fmt: skip
    assert world.executed[2:] == ["SET DEFAULT", "SET GLOBAL super_read_only = OFF"]
    assert (world.stored, world.closed, world.read_only) == (CutoverRecord(), False, False)


def test_the_call_that_stops_the_writes_compares_what_has_changed_since_the_proof() -> None:
    world = World()
    first = Run(world, Wishes())
    first.proof = PROOF
    assert [reason.code for reason in first.run(back=False).reasons] == ["SM-6701"]
    second = Run(world)
    second.proof = later = replace(PROOF, version=3)
    ended = second.run(back=False)
    names = [step.name for step in ended.steps]
    assert names[:5] == ["compare", "read-only", "note", "catch-up", "prove"]
    assert second.given == [(Act.COMPARE, PROOF), (Act.PROVE, later)]
    assert world.stored.changed_only
    report = report_of("m.t", world.stored, (), (), (), rehearsed=False, back=False)
    assert "  7 changed rows were compared after the writes stopped, and are equal" in [
        *lines(report, "")
    ]
    back = Run(world)
    back.run(back=True)
    assert back.given[0][0] is Act.COMPARE_BACK


def test_who_stopped_the_writes_waits_only_for_the_rows_that_changed() -> None:
    world = World()
    first = Run(world, Wishes())
    first.proof = PROOF
    first.run(back=False)
    ended = Run(world, Wishes(stopped=True)).run(back=False)
    assert [step.name for step in ended.steps][:3] == ["note", "catch-up", "prove"]


def test_a_difference_ends_the_call_and_is_told() -> None:
    world, row = World(), RowDifference("missing", ("7",), "s1/app.t", (), 0, 0)
    run = Run(world)
    run.report = replace(EQUAL, differences=(row,), obstacles=1, stopped="enough")
    [reason] = run.run(back=False).reasons
    assert reason.code == "SM-6716"
    assert (
        "rows that differ: 1, such as (7); shards that could not be compared: 1; enough"
        in reason.text
    )
    assert not world.stored.compared
    run.report = EQUAL
    assert run.run(back=False).reasons == ()
    back = Run(world)
    back.report = replace(EQUAL, differences=(row,))
    assert [reason.code for reason in back.run(back=True).reasons] == ["SM-6712"]
    back.report = replace(EQUAL, complete=False, stopped="the target did not apply")
    assert [reason.code for reason in back.run(back=True).reasons] == ["SM-6722"]
    assert world.closed


def test_a_target_that_is_behind_ends_the_call_and_the_next_one_goes_on() -> None:
    world = World()
    run = Run(world)
    run.passes = [True, False]
    [reason] = run.run(back=False).reasons
    assert (reason.code, bool(world.stored.noted)) == ("SM-6717", True)
    world.is_silent = True
    run.passes = [False]
    assert [each.code for each in run.run(back=False).reasons] == ["SM-6717", "SM-6723"]
    assert next(step.name for step in run.run(back=False).steps) == "catch-up"


def test_writes_do_not_stop_for_a_line_that_is_behind() -> None:
    """A connector that lags shows in no row of Kafka."""
    world = World()
    run = Run(world)
    run.passes = [False]
    [reason] = run.run(back=False).reasons
    assert reason.code == "SM-6717"
    assert "No source was made read-only" in reason.text
    assert (world.executed, bool(world.stored.compared)) == ([], True)
    # A table whose comparison proves nothing is not compared again before the writes stop.
    world.stored = replace(world.stored, unprovable="it has no key")
    later = Run(world)
    later.passes = [False]
    assert [each.code for each in later.run(back=False).reasons] == ["SM-6717"]
    assert (world.executed, world.read_only) == ([], False)
    assert later.run(back=False).reasons == ()


def test_what_no_comparison_judged_is_told_before_and_after_the_writes_stop() -> None:
    world = World()
    left_out = ("s1/app.t: rows that the route does not delete are not judged",)
    for wishes in (Wishes(), BY_SERVER):
        run = Run(world, wishes)
        run.report = replace(EQUAL, left_out=left_out)
        ended = run.run(back=False)
        told = report_of(
            "m.t", ended.seen.record, (), ended.reasons, (), rehearsed=False, back=False
        )
        assert f"  not compared: {left_out[0]}" in [*lines(told, "")]
    assert world.stored.opened


def test_what_was_written_behind_the_end_ends_the_call() -> None:
    world = World(written=("source s1 has rows of app.t at f:4",))
    ended = Run(world).run(back=False)
    assert [reason.code for reason in ended.reasons] == ["SM-6708"]
    assert world.stored.noted == ()


def test_a_server_that_refuses_leaves_a_record_that_knows_its_settings() -> None:
    world = World(refuses=True)
    with pytest.raises(StackError):
        Run(world).run(back=False)
    assert world.stored.read_only[0].before == (("super_read_only", "OFF"),)


def test_a_rehearsal_changes_nothing() -> None:
    world = World()
    ended = Run(world, Wishes()).rehearse(back=False)
    assert (world.stored, world.executed) == (CutoverRecord(), [])
    report = report_of(
        "merged.t", ended.seen.record, ended.steps, ended.reasons, ["a note"],
        rehearsed=True, back=False,
    )  # fmt: skip
    text = "\n".join(lines(report, "undo"))
    assert text.startswith("merged.t: these steps would follow; nothing was changed\n  1. compare:")
    assert "       DROP DEFAULT\n" in text
    assert "  SM-6701: " in text
    assert "  note: a note" in text


def test_the_report_says_clearly_what_the_way_back_is() -> None:
    record = CutoverRecord("olga", "then", opened="now", rows=7)
    opened = report_of("merged.t", record, (), (), (), rehearsed=False, back=False)
    text = "\n".join(lines(opened, "shardmerge cutover merged.t --undo"))
    assert "merged.t: applications may write to it since now" in text
    assert "shardmerge cutover merged.t --undo" in text
    assert "After the first write to the target there is no way back" in text
    final = replace(record, tidied=(Tidied("DROP COLUMN", ""),))
    gone = report_of("merged.t", final, (), (), (), rehearsed=False, back=False)
    assert not gone.way_back
    assert "There is no way back" in "\n".join(lines(gone, ""))
    late = Reason("SM-6708", "source s1 has rows of app.t_1", "write them by hand")
    after = report_of("merged.t", record, (), (late,), (), rehearsed=False, back=False)
    assert after.state == "open", "a write to a shard does not take the target back"
    assert "  SM-6708: source s1 has rows of app.t_1" in lines(after, "")
    before, stop = replace(record, opened=""), Reason("SM-6701", "stop", "now")
    waits = report_of("merged.t", before, (), (stop,), (), rehearsed=False, back=False)
    assert (waits.state, list(lines(waits, ""))[1:]) == ("waits", ["  SM-6701: stop", "    now"])
    back = report_of("merged.t", CutoverRecord(), (), (), (), rehearsed=False, back=True)
    assert list(lines(back, "")) == [
        "merged.t: there is no cut-over; the pipeline goes on as before"
    ]
