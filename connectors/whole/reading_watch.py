"""Has tables read as a whole where decisions ask for it, and tells the coordinator.

The tables of a source are read together (``table_reading``). When all open shards of a target are
read, and all schema changes before the readings are decided, one command tells the coordinator of
them. The answer closes the request. If it refuses, because a shard's table changed meanwhile, the
tables are read again, after a growing pause.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from shardmerge.connectors.clock import now_ms
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.failpoints import Passed, nowhere
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.connectors.growing_pause import GrowingPause
from shardmerge.connectors.kafka.command_topic import send_command
from shardmerge.connectors.kafka.record_formats import record_format
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.connectors.repair.source_repair import SourceRepair
from shardmerge.connectors.watch_loop import look_until
from shardmerge.connectors.whole.readings.open_readings import OpenReadings, Wanted
from shardmerge.schemas.model.errors import ContractError, ShardMergeError, StackError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.record_format import RecordFormat
from shardmerge.schemas.records.reloads import Reload, reloads_text
from shardmerge.schemas.records.schema_changes import ChangeId

from .source_changes import SourceChanges
from .table_reading import GivenUp, Read, TableReading

log = logger(__name__)
_REMIND_S = 60.0
_LONGEST_PAUSE_S = 600.0


@dataclass(frozen=True, slots=True)
class _Result:
    """The result for one shard that the coordinator is told; ``changes_to``: see ``Read``."""

    reload: Reload
    changes_to: int


class ReadingWatch:
    """Watches a pipeline's requests for readings. One thread uses it; ``close`` it.

    Args:
        pipeline: Whose topics and connectors.
        rest: The Connect cluster.
        repairs: Connector's name → its repair.
        shortest_s: The first pause before a reading is repeated.
        passed: Called at ``table_reading.PLACES``, and at "told" behind a command.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        rest: ConnectRest,
        repairs: Mapping[str, SourceRepair],
        shortest_s: float = 5.0,
        passed: Passed = nowhere,
    ) -> None:
        self._pipeline = pipeline
        self._passed = passed
        self._readings = {
            source.name: TableReading(
                pipeline, source, rest, repairs[connector_name(pipeline, source)], passed
            )
            for source in pipeline.sources
        }
        self._changes = {source.name: SourceChanges(source.name) for source in pipeline.sources}
        self._ddl = topics.ddl(pipeline).name
        self._commands = topics.commands(pipeline).name
        self._reader = TopicReader(pipeline.kafka)
        self._format: RecordFormat | None = None
        self._next: dict[str, int] = {}
        self._open = OpenReadings(self._commands)
        self._results: dict[Wanted, _Result] = {}
        self._told: dict[int, TargetTable] = {}
        self._pauses: defaultdict[str | TargetTable, GrowingPause] = defaultdict(
            lambda: GrowingPause(shortest_s, _LONGEST_PAUSE_S)
        )
        self._idle: set[str] = set()
        """Sources without a reading in Connect and without a request; only we begin readings."""
        self._since_s: dict[str, float] = {}
        self._reminded_s: dict[str, float] = {}

    def close(self) -> None:
        """Leave Kafka. A reading that is under way is taken up by the next process."""
        self._reader.close()

    def look(self, now_s: float) -> None:
        """Read what is new, advance every source's reading, and tell of those that are done.

        If a source does not answer, the others are looked at nevertheless.

        Args:
            now_s: A monotonic clock's time.

        Raises:
            StackError: Kafka, Connect or a source does not answer; the next look goes on.
            ContractError: A topic holds what nobody should have written there.
        """
        self._take_new()
        self._take_answers(now_s)
        wanted = self._open.wanted()
        self._results = {w: r for w, r in self._results.items() if w in wanted}
        failed: ShardMergeError | None = None
        for source in self._readings:
            try:
                self._look_at(source, wanted, now_s)
            except (StackError, ContractError) as error:
                failed = error
        self._tell(wanted)
        if failed is not None:
            raise failed

    def run(self, stop: threading.Event, interval_s: float = 3.0) -> None:
        """Look again and again until ``stop`` is set; what does not answer is awaited."""
        look_until(stop, self.look, interval_s, "whole_readings")
        self.close()

    def _look_at(self, source: str, wanted: Sequence[Wanted], now_s: float) -> None:
        reading = self._readings[source]
        of_source = [w for w in wanted if w.shard.source == source]
        if not of_source and source in self._idle:
            return
        self._take_end(source, reading.look(), wanted, now_s)
        missing = [
            w for w in of_source if w not in self._results and self._pauses[w.target].is_over(now_s)
        ]
        self._idle.discard(source)
        if reading.under_way():
            if (seconds := self._seconds_to_tell(source, now_s)) is not None:
                log.info("whole_reading_continues", source=source, seconds=seconds)
        elif missing and self._pauses[source].is_over(now_s):
            if reading.begin(missing):
                self._since_s[source] = self._reminded_s[source] = now_s
                self._take_end(source, reading.look(), wanted, now_s)
            elif (seconds := self._seconds_to_tell(source, now_s)) is not None:
                log.info("whole_reading_waits", source=source, seconds=seconds)
        elif not of_source:
            self._idle.add(source)

    def _take_end(
        self, source: str, end: Read | GivenUp | None, wanted: Sequence[Wanted], now_s: float
    ) -> None:
        """Take how a source's reading has ended, if it has."""
        if end is None:
            return
        since_s = self._since_s.pop(source, now_s)
        if isinstance(end, GivenUp):
            self._pauses[source].begin(now_s)
            return
        self._pauses.pop(source, None)
        for done in end.wanted:
            # A shard that was asked for again meanwhile needs a newer reading.
            if done in wanted:
                reload = Reload(done.shard, end.position, end.began_ms)
                self._results[done] = _Result(reload, end.changes_to)
        log.info(
            "whole_reading_ended",
            source=source,
            shards=[read.shard for read in end.wanted],
            position=end.position,
            seconds=round(now_s - since_s),
        )

    def _tell(self, wanted: Sequence[Wanted]) -> None:
        for target in sorted({w.target for w in wanted}):
            shards = [w for w in wanted if w.target == target]
            results = [self._results[w] for w in shards if w in self._results]
            if len(results) < len(shards) or not all(map(self._is_decided, results)):
                continue
            said = OperatorCommand(
                id=ChangeId(self._commands, 0),
                target=target,
                kind=CommandKind.RELOADED,
                argument=reloads_text(result.reload for result in results),
                by="watchdog",
                ts_ms=now_ms(),
            )
            sent = send_command(self._pipeline, self._records(), said)
            self._passed("told")
            # Taken at once: the target's shards must not be read before the answer.
            self._open.take_command(sent.offset, said)
            self._told[sent.offset] = target
            for shard in shards:
                del self._results[shard]
            log.info(
                "whole_reading_reported",
                target=target,
                shards=[w.shard for w in shards],
                command=sent,
            )

    def _is_decided(self, result: _Result) -> bool:
        changes = self._changes[result.reload.shard.source]
        return changes.are_decided(result.changes_to, self._open, self._reader)

    def _take_answers(self, now_s: float) -> None:
        self._told |= self._open.unanswered()
        for offset in sorted(set(self._told) - set(self._open.unanswered())):
            target = self._told.pop(offset)
            if (reason := self._open.refused(offset)) is None:
                self._pauses.pop(target, None)
                continue
            self._pauses[target].begin(now_s)
            log.warning("whole_reading_refused", target=target, reason=reason)

    def _take_new(self) -> None:
        for record in self._new_records(self._commands):
            said = self._records().read(record.value or b"")
            if isinstance(said, OperatorCommand):
                self._open.take_command(record.offset, said)
        for record in self._new_records(self._ddl):
            decision = self._records().read(record.value or b"")
            if isinstance(decision, Decision):
                self._open.take(decision)

    def _new_records(self, topic: str) -> Iterator[StoredRecord]:
        for extent in self._reader.extents((topic,)):
            begin = max(self._next.get(topic, 0), extent.begin)
            for record in self._reader.records(replace(extent, begin=begin)):
                if record.value is not None:
                    yield record
                self._next[topic] = record.offset + 1

    def _records(self) -> RecordFormat:
        if self._format is None:
            self._format = record_format(self._pipeline.kafka)
        return self._format

    def _seconds_to_tell(self, source: str, now_s: float) -> int | None:
        """Once a minute, for how many seconds a source's reading has gone on or waited."""
        if now_s - self._reminded_s.setdefault(source, now_s - _REMIND_S) < _REMIND_S:
            return None
        self._reminded_s[source] = now_s
        return round(now_s - self._since_s.setdefault(source, now_s))
