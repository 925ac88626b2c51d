"""Reads tables of one source as a whole, exactly, at one place of its binlog.

1. A write to the signal table moves the binlog's end, so no earlier reading has the same position.
2. A separate connector is created in the stopped state (``reading_config``). From now on Connect
   knows that a reading is under way, and the repair leaves the source's own connector alone.
3. The source's own connector is stopped. So rows that the binlog has after the reading also come
   after it in the row topics; older rows that come after it there have an earlier position.
4. The reading's connector runs. It takes a snapshot of the tables alone: rows with ``op`` r, all
   at the snapshot's position.
5. When its offset says that the snapshot is complete, two things are checked. One run must have
   read exactly these tables (its schema history tells). And the binlog must have no statement about
   them from where the source's connector stopped up to now. Else the reading does not count: it may
   have read another schema than its position says.
6. The source's own connector runs again. The reading's connector and its topics are deleted.

All progress can be seen in Connect, so another process can go on at any step. A reading that does
not count leaves rows in the row topics. Their position is before that of the reading that counts.

Source: Debezium 3.6.1, ``RelationalSnapshotChangeEventSource``; Kafka Connect 4.3, KIP-980 (a
connector that is made stopped); measured, tests/integration/connect/test_whole_reading.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import (
    connector_name,
    reading_name,
    readings_among,
)
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.failpoints import Passed, nowhere
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.connectors.kafka.topics_admin import create_topics, delete_topics
from shardmerge.connectors.repair.source_connector import SourceConnector
from shardmerge.connectors.repair.source_repair import SourceRepair
from shardmerge.connectors.sources.signal_table import move_binlog
from shardmerge.connectors.whole.readings.concerned import first_concerning
from shardmerge.connectors.whole.readings.open_readings import Wanted
from shardmerge.connectors.whole.readings.reading_config import (
    reading_config,
    reading_history,
    reading_offsets,
    reading_topics_among,
    runs_of,
    wanted_of,
)
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline, Source

log = logger(__name__)
PLACES = ("moved", "topic made", "made", "set aside", "begun", "complete", "taken back", "deleted")
"""Where a process can end, for tests of what it leaves."""


@dataclass(frozen=True, slots=True)
class Read:
    """A reading that counts.

    Attributes:
        wanted: The shards that were read.
        position: At which their rows stand.
        began_ms: Their rows were read from this time on, by the connector's clock.
        changes_to: All records of the source's schema-change topic below this offset are from
            before the reading. They must be decided before the coordinator is told of it.
    """

    wanted: tuple[Wanted, ...]
    position: SourcePosition
    began_ms: int
    changes_to: int


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A reading that does not count, and why."""

    reason: str


class TableReading:
    """The readings of one source, one after the other. One thread uses it.

    Args:
        pipeline: Whose source.
        source: What is read.
        rest: The Connect cluster.
        repair: Looks after the source's own connector.
        passed: Called at ``PLACES``.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        source: Source,
        rest: ConnectRest,
        repair: SourceRepair,
        passed: Passed = nowhere,
    ) -> None:
        self._pipeline = pipeline
        self._source = source
        self._rest = rest
        self._repair = repair
        self._passed = passed
        self._connector = connector_name(pipeline, source)
        self._kafka = pipeline.kafka
        self._is_tidied = False
        self._ended: Read | GivenUp | None = None

    def begin(self, wanted: Sequence[Wanted]) -> bool:
        """Begin a reading; ``look`` goes on with it.

        Args:
            wanted: Shards of the source; at least one.

        Returns:
            False when the source's own connector does not run, is being repaired, or is still in
            its first snapshot.

        Raises:
            StackError: Connect, Kafka or the source does not answer, or refuses.
        """
        status = self._rest.status(self._connector)
        if status is None or not status.is_running or self._repair.is_under_repair():
            return False
        offset = self._repair.offset()
        if offset is None or offset.is_snapshot:
            return False
        move_binlog(self._pipeline, self._source)
        self._passed("moved")
        name = reading_name(self._pipeline, self._source, uuid.uuid4().hex[:12])
        # Made by Connect it would have more than one partition.
        create_topics(self._kafka, [reading_offsets(self._pipeline, self._source, name)])
        self._passed("topic made")
        config = reading_config(self._pipeline, self._source, name, wanted)
        self._rest.create_stopped(name, config)
        shards = [w.shard for w in wanted]
        log.info("whole_reading_begun", source=self._source.name, shards=shards)
        self._passed("made")
        return True

    def look(self) -> Read | GivenUp | None:
        """Advance a reading by as many steps as are possible now.

        Returns:
            How one has ended, at this look; else None.

        Raises:
            StackError: Connect, Kafka or the source does not answer: look again later.
            ContractError: A topic holds what nobody should have written there.
        """
        names = self.under_way()
        # The result of a reading is known before everything at its end is done.
        self._ended = self._ended or self._step(names)
        if self._ended is None:
            return None
        self._end(names)
        ended, self._ended = self._ended, None
        return ended

    def under_way(self) -> tuple[str, ...]:
        """The connectors of unfinished readings: at most one, unless somebody made more by hand.

        Raises:
            StackError: Connect does not answer.
        """
        return readings_among(self._rest.connectors(), self._connector)

    def _step(self, names: Sequence[str]) -> Read | GivenUp | None:
        if not names:
            self._tidy()
            return None
        if len(names) > 1:
            return self._give_up("there are several of the source at once")
        status = self._rest.status(names[0])
        if status is None:
            # It was made a moment ago.
            return None
        if status.is_failed:
            return self._give_up(f"its connector failed: {status.reason()}")
        if status.state == "STOPPED":
            return self._start(names[0])
        own = self._rest.status(self._connector)
        if own is None or own.state != "STOPPED":
            return self._give_up("the source's own connector was not stopped all the time")
        offset = self._rest.offset(names[0])
        if offset is None or offset.get("snapshot"):
            return None
        self._passed("complete")
        position = SourcePosition(self._source.epoch, str(offset["file"]), int(offset["pos"]), 0)
        return self._conclude(names[0], position)

    def _start(self, name: str) -> GivenUp | None:
        if self._rest.offset(name) is not None:
            return self._give_up("its connector was stopped while it read")
        if not self._repair.set_aside():
            return self._give_up("the source's own connector is being repaired")
        self._passed("set aside")
        self._rest.resume(name)
        self._passed("begun")
        return None

    def _conclude(self, name: str, position: SourcePosition) -> Read | GivenUp:
        wanted = wanted_of(self._rest.config(name) or {})
        with TopicReader(self._kafka) as reader:
            runs = runs_of(
                record.value
                for extent in reader.extents((reading_history(name),))
                for record in reader.records(extent)
            )
            told = topics.schema_changes(self._pipeline, self._source.name).name
            changes_to = max(e.high_watermark for e in reader.extents((told,)))
        shards = [w.shard for w in wanted]
        if lacking := runs.lacking(shards):
            return self._give_up(
                f"{', '.join(map(str, lacking))}: no such table was read. If it is gone and the "
                "pipeline was not told, `shardmerge command leave` takes the shard out"
            )
        if not runs.is_one_of(shards):
            seen = ", ".join(f"{t.database}.{t.table}: {n}" for t, n in runs.tables.items())
            return self._give_up(f"not each of its tables was read once ({seen or 'none was'})")
        if (changed := self._changed(wanted)) is not None:
            return self._give_up(f"a table was changed meanwhile: {changed}")
        return Read(wanted, position, runs.rows_from_ms, changes_to)

    def _changed(self, wanted: Sequence[Wanted]) -> str | None:
        """The statement about the tables from where the source's connector stopped up to now."""
        tables = {TableName(w.shard.database, w.shard.table) for w in wanted}
        with closing(SourceConnector(self._pipeline, self._source, self._rest)) as own:
            offset = own.offset()
            if offset is None:
                raise StackError(
                    f"connector {self._connector} has no offset any more", code="SM-4310"
                )
            ahead = own.ahead(offset, own.topics.delivered())
            found = first_concerning(ahead, tables, own.context)
        return None if found is None else f"{found.sql!r} at {found.file}:{found.pos}"

    def _give_up(self, reason: str) -> GivenUp:
        log.warning("whole_reading_given_up", source=self._source.name, reason=reason)
        return GivenUp(reason)

    def _end(self, names: Sequence[str]) -> None:
        """Let the source's own connector run, and forget the readings."""
        # In this order: while Connect has a reading's connector, we know that the stop is ours.
        self._repair.take_back()
        self._passed("taken back")
        for name in names:
            self._rest.delete(name)
        self._passed("deleted")
        self._delete_topics()

    def _tidy(self) -> None:
        """Delete, once, the topics that a process left which ended before it did so."""
        if not self._is_tidied:
            self._delete_topics()
            self._is_tidied = True

    def _delete_topics(self) -> None:
        """Delete the topics of all readings of the source, of which none is under way."""
        delete_topics(self._kafka, lambda names: reading_topics_among(names, self._connector))
