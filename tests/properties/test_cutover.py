"""No order of writes, kills and calls ends in "applications may write" while a row is missing.

A toy of two sources and a target. Between a look and the step that follows from it anybody may
write, and a step may be killed before its effect, or before the record says that it ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from shardmerge.cli.cutover.foreseen import Proved, record_after, record_before
from shardmerge.cli.cutover.procedure import next_step, next_step_back
from shardmerge.cli.cutover.record import CutoverRecord, NotedEnd, Tidied
from shardmerge.cli.cutover.seen import Act, Seen, SourceSeen, Step, Wishes
from shardmerge.schemas.model.position import SourcePosition

NAMES = ("s1", "s2")
UNTIDY = (Tidied("DROP DEFAULT", "SET DEFAULT"), Tidied("AUTO_INCREMENT", "MODIFY"))
WAYS = (Wishes(), Wishes(read_only=True, confirmed=True), Wishes(stopped=True))
names = st.sampled_from(NAMES)


@dataclass
class Source:
    """A server: the rows that its binlog has, and how many of them the sink has applied."""

    rows: int = 0
    applied: int = 0
    read_only: bool = False


@dataclass
class World:
    """Sources, target, and what is stored of the cut-over. A row is a source and a number."""

    sources: dict[str, Source] = field(default_factory=lambda: {n: Source() for n in NAMES})
    target: set[tuple[str, int]] = field(default_factory=set)
    closed: bool = False
    untidy: list[Tidied] = field(default_factory=lambda: [*UNTIDY])
    record: CutoverRecord = field(default_factory=CutoverRecord)

    def rows(self) -> set[tuple[str, int]]:
        """What the shards have."""
        return {(name, n) for name, source in self.sources.items() for n in range(source.rows)}

    def seen(self, *, unchanged: bool, fresh: bool) -> Seen:
        """A look."""
        noted = {end.source: end.position.pos for end in self.record.noted}
        return Seen(
            self.record,
            self.closed,
            tuple(
                SourceSeen(
                    name,
                    read_only=source.read_only,
                    before=(("read_only", "ON" if source.read_only else "OFF"),),
                    written=("rows",) if source.rows > noted.get(name, source.rows) else (),
                )
                for name, source in self.sources.items()
            ),
            untidy=tuple(self.untidy),
            unchanged=unchanged,
            fresh=fresh,
        )


class CutoverMachine(RuleBasedStateMachine):
    """Events in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.wishes, self.back = Wishes(), False
        self.step: Step | None = None
        self.missing: set[tuple[str, int]] = set()
        self.unchanged = self.fresh = False
        self.privileged = self.by_hand = False

    @rule(name=names)
    def an_application_writes_to_a_source(self, name: str) -> None:
        if not self.world.sources[name].read_only:
            self.world.sources[name].rows += 1

    @rule(name=names)
    def somebody_with_every_right_writes(self, name: str) -> None:
        self.world.sources[name].rows += 1
        self.privileged = True

    @rule(name=names)
    def a_server_starts_again_and_is_writable(self, name: str) -> None:
        self.world.sources[name].read_only = False
        self.privileged = True

    @rule(name=names)
    def the_sink_applies_a_row(self, name: str) -> None:
        source = self.world.sources[name]
        if not self.world.closed and source.applied < source.rows:
            self.world.target.add((name, source.applied))
            source.applied += 1

    @rule(name=names)
    def the_sink_loses_a_row(self, name: str) -> None:
        source = self.world.sources[name]
        if not self.world.closed and source.applied < source.rows:
            source.applied += 1

    @rule(number=st.integers(0, 9))
    @precondition(lambda self: self.world.record.opened and not self.world.record.undoing)
    def an_application_writes_to_the_target(self, number: int) -> None:
        self.world.target.add(("application", number))

    @rule(wishes=st.sampled_from(WAYS), back=st.booleans())
    def a_call_begins(self, wishes: Wishes, back: bool) -> None:
        self.wishes, self.back, self.step = wishes, back, None
        self.unchanged = self.fresh = False

    @rule()
    def the_call_looks(self) -> None:
        seen = self.world.seen(unchanged=self.unchanged, fresh=self.fresh)
        self.missing = self.world.rows() - self.world.target
        self.step = next_step_back(seen, self.wishes) if self.back else next_step(seen, self.wishes)
        if self.wishes.stopped:
            self.by_hand = True

    @rule(killed=st.sampled_from(["", "", "", "before", "after"]))
    @precondition(lambda self: self.step is not None)
    def the_call_acts(self, killed: str) -> None:
        step, self.step, world = self.step, None, self.world
        assert step is not None
        if step.act is Act.DONE and not self.back:
            assert world.closed, "it says that applications may write"
        if step.act in (Act.REFUSE, Act.ASK, Act.DONE):
            return
        record = world.record
        if not record.is_begun:
            record = replace(record, by="olga", begun="now")
        world.record = prepared = record_before(record, step)
        if killed == "before" or not self.succeeds(step):
            return
        noted = tuple(
            NotedEnd(name, SourcePosition(0, "f", source.rows, 0))
            for name, source in world.sources.items()
        )
        self.change(step)
        if killed == "after":
            self.unchanged = self.fresh = False
            return
        if step.act is Act.OPEN:
            self.check_opening()
        world.record = record_after(
            prepared, step, "now", noted=noted, proved=Proved(len(world.target))
        )

    @rule(steps=st.integers(1, 9), applies=st.booleans())
    def the_call_goes_on_for_a_while(self, steps: int, applies: bool) -> None:
        for _ in range(steps):
            if applies:
                for name in NAMES * 3:
                    self.the_sink_applies_a_row(name)
            self.the_call_looks()
            self.the_call_acts("")

    def succeeds(self, step: Step) -> bool:
        """Whether a step that waits or proves comes to its end."""
        world = self.world
        match step.act:
            case Act.CATCH_UP:
                return all(
                    world.sources[end.source].applied >= end.position.pos
                    for end in world.record.noted
                )
            case Act.PROVE | Act.COMPARE_BACK:
                return world.rows() == world.target
            case _:
                return True

    def change(self, step: Step) -> None:
        """What a step does to the world."""
        world = self.world
        match step.act:
            case Act.READ_ONLY:
                assert step.source is not None
                world.sources[step.source.name].read_only = True
            case Act.WRITABLE:
                assert step.source is not None
                world.sources[step.source.name].read_only = (
                    dict(step.source.before)["read_only"] == "ON"
                )
            case Act.CLOSE:
                world.closed = True
            case Act.REOPEN:
                world.closed = False
            case Act.TIDY:
                world.untidy.pop(0)
            case Act.RESTORE:
                assert step.tidied is not None
                world.untidy = [t for t in UNTIDY if t in (*world.untidy, step.tidied)]
            case Act.COMPARE:
                self.fresh = True
            case Act.COMPARE_BACK:
                self.unchanged = True
            case Act.FORGET:
                world.record = CutoverRecord()
                assert not world.closed
                assert world.untidy == [*UNTIDY]
            case _:
                pass

    def check_opening(self) -> None:
        """The promise."""
        assert not self.missing, "a row that was written before the last look is missing"
        assert self.world.closed
        if not self.privileged and not self.by_hand:
            assert self.world.rows() <= self.world.target, "a row is missing"

    @invariant()
    def the_sink_writes_nothing_while_applications_may(self) -> None:
        record = self.world.record
        assert self.world.closed or not record.opened or record.undoing

    @invariant()
    def what_was_changed_can_be_taken_back(self) -> None:
        record = self.world.record
        assert {t for t in UNTIDY if t not in self.world.untidy} <= set(record.tidied)


TestCutover = CutoverMachine.TestCase
TestCutover.settings = settings(stateful_step_count=60)


DISTURBANCES = {
    "nothing": 14,
    "the sink applies all": 5,
    "an application writes": 2,
    "somebody with every right writes": 1,
    "a server starts again": 1,
    "the sink loses a row": 1,
    "another call": 1,
}
disturbances = st.sampled_from([n for name, often in DISTURBANCES.items() for n in [name] * often])


def disturb(machine: CutoverMachine, what: str, name: str, wishes: Wishes, *, back: bool) -> None:
    """One of ``DISTURBANCES``."""
    match what:
        case "the sink applies all":
            for each in NAMES:
                while machine.world.sources[each].applied < machine.world.sources[each].rows:
                    machine.the_sink_applies_a_row(each)
                    if machine.world.closed:
                        break
        case "an application writes":
            machine.an_application_writes_to_a_source(name)
        case "somebody with every right writes":
            machine.somebody_with_every_right_writes(name)
        case "a server starts again":
            machine.a_server_starts_again_and_is_writable(name)
        case "the sink loses a row":
            machine.the_sink_loses_a_row(name)
        case "another call":
            machine.a_call_begins(wishes, back=back)
        case _:
            pass


@given(st.data())
def test_a_call_that_is_disturbed_keeps_the_promise(data: st.DataObject) -> None:
    machine = CutoverMachine()
    machine.a_call_begins(data.draw(st.sampled_from(WAYS[1:])), back=False)
    kills = st.sampled_from([""] * 10 + ["before", "after"])
    for _ in range(data.draw(st.integers(10, 30))):
        for act in (machine.the_call_looks, lambda: machine.the_call_acts(data.draw(kills))):
            wishes, back = data.draw(st.sampled_from(WAYS[1:])), data.draw(st.booleans())
            disturb(machine, data.draw(disturbances), data.draw(names), wishes, back=back)
            if machine.step is not None or act == machine.the_call_looks:
                act()
            machine.the_sink_writes_nothing_while_applications_may()
            machine.what_was_changed_can_be_taken_back()


def test_a_call_without_disturbance_opens_the_target_and_the_way_back_restores_everything() -> None:
    machine = CutoverMachine()
    machine.an_application_writes_to_a_source("s1")
    machine.the_sink_applies_a_row("s1")
    machine.a_call_begins(WAYS[1], back=False)
    for _ in range(20):
        machine.the_call_looks()
        machine.the_call_acts("")
    assert machine.world.record.opened
    assert machine.world.untidy == []
    assert all(source.read_only for source in machine.world.sources.values())
    machine.a_call_begins(WAYS[0], back=True)
    for _ in range(20):
        machine.the_call_looks()
        machine.the_call_acts("")
    assert machine.world.record == CutoverRecord()
    assert not any(source.read_only for source in machine.world.sources.values())
