"""The agents' tables, read from changelogs that a toy reader has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from shardmerge.agents.handling.stored_table import COORDINATOR_TABLE, TRACKER_TABLE, changelog
from shardmerge.agents.web import present
from shardmerge.agents.web.present import KafkaPresent
from shardmerge.connectors.formats.stored_record import Extent, StoredRecord
from shardmerge.schemas.model.names import TargetTable
from tests.recorded import Recorded
from tests.unit.cli.views.pictures import ONE, TARGET, TWO, conflicting


class ToyReader:
    """A ``TopicReader`` over a recorded pipeline."""

    def __init__(self, made: Recorded) -> None:
        self.made = made
        self.read: list[str] = []
        self.more = 0

    def __enter__(self) -> ToyReader:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def extents(self, names: Sequence[str]) -> tuple[Extent, ...]:
        found = []
        for name in names:
            end = len(self._records(name)) + self.more
            found.append(Extent(name, 0, 0, end, end))
        return tuple(found)

    def records(self, extent: Extent) -> Iterator[StoredRecord]:
        self.read.append(extent.topic)
        yield from self._records(extent.topic)

    def _records(self, name: str) -> list[StoredRecord]:
        for table in (COORDINATOR_TABLE, TRACKER_TABLE):
            if name == changelog(self.made.pipeline, table):
                return self.made.changelog(table)
        return self.made.topic(name)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> ToyReader:
    found = ToyReader(conflicting())
    monkeypatch.setattr(present, "TopicReader", lambda *_: found)
    return found


def test_a_targets_state_is_that_of_the_coordinators_table(reader: ToyReader):
    state = KafkaPresent(reader.made.pipeline).state(TARGET)
    assert state is not None
    assert sorted(state.held) == [TWO]
    assert state.defaults


def test_a_target_that_nobody_knows_has_no_state(reader: ToyReader):
    assert KafkaPresent(reader.made.pipeline).state(TargetTable("no", "such")) is None


def test_what_both_agents_know_is_told_together(reader: ToyReader):
    state = KafkaPresent(reader.made.pipeline).agents_state()
    assert list(state.shards) == [ONE, TWO]
    assert set(state.tables) == {ONE, TWO}


def test_a_table_is_read_again_only_when_its_topic_has_grown(reader: ToyReader):
    known = KafkaPresent(reader.made.pipeline)
    known.state(TARGET)
    known.state(TARGET)
    assert len(reader.read) == 1
    reader.more = 1
    known.state(TARGET)
    assert len(reader.read) == 2
