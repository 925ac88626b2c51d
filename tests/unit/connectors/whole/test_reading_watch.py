"""When tables are read as a whole, and when the coordinator is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.formats.stored_record import Extent, StoredRecord
from shardmerge.connectors.whole import reading_watch
from shardmerge.connectors.whole.reading_watch import ReadingWatch
from shardmerge.connectors.whole.readings.open_readings import Wanted
from shardmerge.connectors.whole.table_reading import GivenUp, Read
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline, Source
from shardmerge.schemas.records.codec import encode
from shardmerge.schemas.records.decisions import Decision, Fixup, FixupKind, Outcome
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.reloads import Reload, reloads_in
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.unit.connectors.debezium.test_source_config import PIPELINE

TARGET = TargetTable("m", "t")
FIRST, SECOND = (source.name for source in PIPELINE.sources[:2])
A, B = ShardId(FIRST, "app", "t"), ShardId(SECOND, "app", "t")
DDL, COMMANDS = topics.ddl(PIPELINE).name, topics.commands(PIPELINE).name
PLACE = SourcePosition(0, "binlog.000007", 900, 0)


@dataclass
class Kafka:
    """Topics with their records; of ends behind them, as markers of transactions make them."""

    records_: dict[str, list[bytes]] = field(default_factory=dict)
    markers: int = 0

    def extents(self, names: Sequence[str]) -> tuple[Extent, ...]:
        ends = {name: len(self.records_.get(name, ())) + self.markers for name in names}
        return tuple(Extent(name, 0, 0, end, end) for name, end in ends.items())

    def records(self, extent: Extent) -> Iterator[StoredRecord]:
        values = self.records_.get(extent.topic, [])
        for offset, value in enumerate(values[extent.begin : extent.end], extent.begin):
            yield StoredRecord(extent.topic, 0, offset, None, value)

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class Reading:
    """One source's, whose ends the test says."""

    all_: ClassVar[dict[str, Reading]] = {}

    pipeline: Pipeline
    source: Source
    rest: object
    repair: object
    passed: object
    end: Read | GivenUp | StackError | None = None
    begun: list[tuple[Wanted, ...]] = field(default_factory=list)
    is_under_way: bool = False

    def __post_init__(self) -> None:
        self.all_[self.source.name] = self

    def begin(self, wanted: Sequence[Wanted]) -> bool:
        self.begun.append(tuple(wanted))
        self.is_under_way = True
        return True

    def look(self) -> Read | GivenUp | None:
        end, self.end = self.end, None
        if isinstance(end, StackError):
            raise end
        self.is_under_way &= end is None
        return end

    def under_way(self) -> tuple[str, ...]:
        return ("c.whole",) if self.is_under_way else ()

    def ends(self, changes_to: int = 0) -> None:
        self.end = Read(self.begun[-1], PLACE, 7, changes_to)


class Line:
    """A watch, and what it is shown."""

    def __init__(self, kafka: Kafka, told: list[tuple[Reload, ...]]) -> None:
        self.kafka, self.told = kafka, told
        self._version = 0
        repairs: Any = dict.fromkeys(f"{PIPELINE.name}.{s.name}" for s in PIPELINE.sources)
        self._watch = ReadingWatch(PIPELINE, cast(ConnectRest, None), repairs, shortest_s=10.0)

    def look(self, now_s: float = 0.0) -> None:
        self._watch.look(now_s)

    def decide(self, change: ChangeId, outcome: Outcome = Outcome.EMIT, **more: Any) -> None:
        self._version += 1
        decision = Decision(change, TARGET, self._version, None, BEGINNING, outcome, **more)
        self.kafka.records_.setdefault(DDL, []).append(encode(decision))

    def ask(self, *shards: ShardId) -> None:
        fixups = tuple(Fixup(shard, FixupKind.WHOLE, (), "no key") for shard in shards)
        self.decide(ChangeId("elsewhere", self._version), fixups=fixups)

    def of(self, source: str) -> Reading:
        return Reading.all_[source]


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    kafka, told = Kafka(), list[tuple[Reload, ...]]()

    def send_command(pipeline: Pipeline, format_: object, said: OperatorCommand) -> ChangeId:
        told.append(reloads_in(said.argument))
        values = kafka.records_.setdefault(COMMANDS, [])
        values.append(encode(said))
        return ChangeId(COMMANDS, len(values) - 1)

    monkeypatch.setattr(reading_watch, "TopicReader", lambda _: kafka)
    monkeypatch.setattr(reading_watch, "TableReading", Reading)
    monkeypatch.setattr(reading_watch, "send_command", send_command)
    return Line(kafka, told)


def test_the_shards_of_a_target_are_told_together_when_all_are_read(line: Line) -> None:
    line.ask(A, B)
    line.look()
    assert line.of(FIRST).begun == [(Wanted(TARGET, A, 1),)]
    assert line.of(SECOND).begun == [(Wanted(TARGET, B, 1),)]
    line.of(FIRST).ends()
    line.look()
    assert line.told == []
    line.of(SECOND).ends()
    line.look()
    assert line.told == [(Reload(A, PLACE, 7), Reload(B, PLACE, 7))]


def test_nothing_is_read_between_a_command_and_its_answer(line: Line) -> None:
    line.ask(A)
    line.look()
    line.of(FIRST).ends()
    for _ in range(3):
        line.look(99.0)
    assert len(line.of(FIRST).begun) == len(line.told) == 1
    line.decide(ChangeId(COMMANDS, 0), reloads=line.told[0])
    line.look(999.0)
    assert len(line.of(FIRST).begun) == len(line.told) == 1


def test_what_is_refused_is_read_again_after_a_pause(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    line.ask(A)
    line.look()
    line.of(FIRST).ends()
    line.look()
    line.decide(ChangeId(COMMANDS, 0), Outcome.REFUSED, reason="its table was changed")
    line.look(100.0)
    assert 'whole_reading_refused target=m.t reason="its table was changed' in caplog.text
    line.look(109.0)
    assert len(line.of(FIRST).begun) == 1
    line.look(110.0)
    assert len(line.of(FIRST).begun) == 2


def test_what_is_given_up_is_read_again_after_a_pause(line: Line) -> None:
    line.ask(A)
    line.look()
    line.of(FIRST).end = GivenUp("a table was changed meanwhile")
    line.look(100.0)
    line.look(109.0)
    assert len(line.of(FIRST).begun) == 1
    line.look(110.0)
    assert len(line.of(FIRST).begun) == 2


def test_a_reading_is_void_for_a_shard_that_is_asked_for_anew_meanwhile(line: Line) -> None:
    line.ask(A)
    line.look()
    line.ask(A)
    line.of(FIRST).ends()
    line.look()
    assert line.told == []
    assert line.of(FIRST).begun[-1] == (Wanted(TARGET, A, 2),)


def test_a_result_that_waits_is_void_when_its_shard_is_asked_for_anew(line: Line) -> None:
    line.ask(A, B)
    line.look()
    line.of(FIRST).ends()
    line.look()
    line.ask(A)
    line.of(SECOND).ends()
    line.look()
    assert line.told == []
    assert line.of(FIRST).begun[-1] == (Wanted(TARGET, A, 2),)


def test_nobody_is_told_before_everything_of_before_the_reading_is_decided(line: Line) -> None:
    line.ask(A)
    line.kafka.records_[FIRST] = [b"", b""]
    line.kafka.markers = 1
    line.look()
    line.of(FIRST).ends(changes_to=3)
    line.look()
    line.decide(ChangeId(FIRST, 1))
    line.look()
    assert line.told == []
    line.decide(ChangeId(FIRST, 0, 0, 2))
    line.look()
    assert line.told == []
    line.decide(ChangeId(FIRST, 0, 1, 2))
    line.look()
    assert line.told == [(Reload(A, PLACE, 7),)]


def test_a_source_that_does_not_answer_keeps_no_other_from_being_read(line: Line) -> None:
    line.ask(A, B)
    line.of(FIRST).end = StackError("it is away")
    with pytest.raises(StackError, match="it is away"):
        line.look()
    assert len(line.of(SECOND).begun) == 1
    line.look()
    assert len(line.of(FIRST).begun) == 1


def test_a_reading_that_another_process_began_is_gone_on_with(line: Line) -> None:
    reading = line.of(FIRST)
    reading.begun.append((Wanted(TARGET, A, 1),))
    reading.is_under_way = True
    line.ask(A)
    line.look()
    assert len(reading.begun) == 1
    reading.ends()
    line.look()
    assert line.told == [(Reload(A, PLACE, 7),)]
