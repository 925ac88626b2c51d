"""The driver's loop over a toy Kafka and a toy target, one atomic step at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast
from zlib import crc32

from shardmerge.schemas.lattice.origin_columns import of_shard
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.origin import origin_part
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.records.decisions import Decision, TargetStatement
from shardmerge.spark_sink.barrier.applied import Applied, CatchUp, RowProgress, Watermarks
from shardmerge.spark_sink.barrier.barrier import Barrier, Barriers
from shardmerge.spark_sink.barrier.decisions import Decisions, StatementKey
from shardmerge.spark_sink.barrier.partitions import partitions_of
from shardmerge.spark_sink.barrier.read_again import awaited_rereads, stands_held
from shardmerge.spark_sink.barrier.restarts import BEGUN, UNDONE, VOID, Restart, Stage, peers
from shardmerge.spark_sink.barrier.shard_gates import Gate
from shardmerge.spark_sink.barrier.statements import OpenStatement, Refused, bindings, holds_rows_up
from shardmerge.spark_sink.barrier.truncations import Truncation, emptying
from shardmerge.spark_sink.planning.plan import BatchPlan, plan
from shardmerge.spark_sink.planning.ranges import RangeTask, Segment
from shardmerge.spark_sink.planning.sink_state import SinkState
from shardmerge.spark_sink.rows.folding.segment_locator import is_behind
from shardmerge.spark_sink.rows.values.constant_values import added_value
from tests.toy_kafka import NOTICES, Place, Row, Scanned, ToyKafka
from tests.toy_target import FAMILIES, Rejected, ToyTarget
from tests.toy_truncations import Move, moves_behind

PARTS = 3
"""How many steps of a statement lie between two looks at the world, at most."""
_ENDED = object()


class ToySink:
    """What a driver keeps in memory. A crash makes a new one.

    ``steps`` is the loop: it yields between any two things that a crash can come between, or
    that the world can change between.

    Attributes:
        stale: Read the watermarks before the decisions that a plan uses: slower to prove, but
            the proof must not be wrong.
        stuck: Shards that stand for good at a value of a type that they gave up.
        passes: How often the loop has begun anew.
        busy: The target while statements run on it.
        truncations: What was met and is not carried out.
        unknown_rows: Shards that stand at a TRUNCATE since nobody knows which rows are theirs.
    """

    stale = False

    def __init__(
        self,
        kafka: ToyKafka,
        ddl: Sequence[Decision | None],
        target: ToyTarget,
        sources: Sequence[str],
        batch: int,
        *,
        routes: Sequence[RoutingRule] = (),
    ) -> None:
        self.kafka, self.ddl, self.target, self.batch = kafka, ddl, target, batch
        self.decisions = Decisions(kafka.topics)
        self.catch_up = CatchUp()
        self.places: dict[Place, str] = {}
        self.barriers = Barriers(sources)
        self.watermarks = Watermarks()
        self.applied = {place: Applied(offset) for place, offset in target.offsets.items()}
        self.moved = False
        self.passes = 0
        self.stuck: set[ShardId] = set()
        self.routes = routes
        self.busy: set[TargetTable] = set()
        self.truncations: dict[ShardId, Truncation] = {}
        self.unknown_rows: set[ShardId] = set()
        self._running: Iterator[None] = iter(())
        self._ddl_read = 0
        self._notices_read = 0
        self.scans: dict[tuple[str, str], list[int]] = {}
        self.refused: dict[StatementKey, tuple[str, object]] = {}

    def steps(self) -> Iterator[None]:
        while True:
            self.passes += 1
            self.moved = False
            yield from self._work()
            for phase in (self._observe, self._read) if self.stale else (self._read, self._observe):
                yield from phase()
            self.barriers.settle(self.decisions, self._ddl_read)
            self.catch_up.look(self.places, self.watermarks, self.state().rows.at)
            batch = plan(self.decisions, self.state(), self.batch)
            yield
            self._execute(batch)
            yield from self._apply(batch)

    def state(self) -> SinkState:
        targets = self.decisions.targets
        return SinkState(
            executed=dict.fromkeys(targets, self.target.executed),
            refused={
                target: {
                    key: Refused(error, resting=then == self._applied_so_far())
                    for key, (error, then) in self.refused.items()
                }
                for target in targets
            },
            rows=RowProgress(self.applied, self.watermarks, self.catch_up.caught_up, self.scans),
            safe_ends=self.barriers.safe_ends,
            busy=self.busy,
            resting=dict.fromkeys(self.stuck | self.unknown_rows, BEGINNING),
            truncations=self.truncations,
            routes=self.routes,
        )

    def barrier_of(self, source: str) -> int:
        """The barrier is the high watermark of the schema-change topic."""
        return self.kafka.logs[Place(source, 0)].high_watermark

    def ddl_watermark(self) -> int:
        """The ddl topic's."""
        return len(self.ddl)

    def _read(self) -> Iterator[None]:
        while self._ddl_read < len(self.ddl):
            decision = self.ddl[self._ddl_read]
            if decision is not None:
                self.decisions.add(decision)
            self._ddl_read += 1
            yield
        for source, tail in self.barriers.tails.items():
            log = self.kafka.logs[Place(source, 0)]
            end = log.stable_end
            for offset, _ in log.committed(tail.read_to, end):
                tail.record(offset)
            tail.reached(end)
        notices = self.kafka.logs[NOTICES]
        end = notices.stable_end
        for _, said in notices.committed(self._notices_read, end):
            assert isinstance(said, Scanned)
            table = f"{said.shard.database}.{said.shard.table}"
            readings = self.scans.setdefault((said.shard.source, table), [])
            readings.append(self.watermarks.number + 1)
        self._notices_read = end
        yield

    def _observe(self) -> Iterator[None]:
        seen = self.decisions.seen
        listed = self.kafka.counts()
        streams = self.decisions.streams
        counts = {s.topic: listed[s.topic] for s in streams if s.topic in listed}
        yield
        self.places = places = {
            place: owners[0][1].source
            for stream, owners in streams.items()
            for place in partitions_of(stream, counts.get(stream.topic, 0))
        }
        whole = {place.whole for place in places}
        asked = self._asked(whole)
        looks_at_all = asked is whole or self.watermarks.number == 0
        # Of shards that have just come the ends are asked for at once.
        asked = whole if looks_at_all else asked | (whole - self.watermarks.ends.keys())
        seen_ends = {} if looks_at_all else self._seen_ends(asked)
        watermarks = {
            place: seen_ends.get(place, self.kafka.logs[place].high_watermark) for place in asked
        }
        self.barriers.check(watermarks)
        if looks_at_all:
            number, topics = self.watermarks.number + 1, self.kafka.topics
            self.watermarks = Watermarks(seen, counts, watermarks, topics, number=number)
        else:
            ends = {**self.watermarks.ends, **watermarks}
            known = replace(self.watermarks, partitions=counts, ends=ends)
            self.watermarks = self.proven_by_some(known)
        yield
        ends = {
            p: seen_ends.get(p.whole, self.kafka.logs[p.whole].stable_end)
            for p in self.barriers.partitions_to_read(places)
        }
        yield
        by_source: dict[str, dict[Place, int]] = {}
        for place in self.barriers.grown(ends):
            by_source.setdefault(places[place], {})[place] = ends[place]
        for source, source_ends in by_source.items():
            ddl_watermark = self.ddl_watermark()
            watermark = self.barrier_of(source)
            self.barriers.take(Barrier(source, watermark, source_ends, ddl_watermark))
            yield

    def proven_by_some(self, known: Watermarks) -> Watermarks:
        """After a look at some partitions: what the last look at all has proved stays as it was."""
        return known

    def _asked(self, whole: set[Place]) -> set[Place]:
        """The partitions whose ends are asked for; the argument itself for all."""
        return whole

    def _seen_ends(self, asked: set[Place]) -> dict[Place, int]:
        """The partitions of which no end is asked for → the end behind a row that was seen."""
        return {}

    def _work(self) -> Iterator[None]:
        """Let what runs on the target come a little further."""
        for _ in range(PARTS if self.busy else 0):
            self.moved = True
            if next(self._running, _ENDED) is _ENDED:
                self.busy.clear()
                return
            yield

    def _execute(self, batch: BatchPlan) -> None:
        """Begin to execute what is ready; all is of one target."""
        for target in batch.targets:
            if target.ready:
                self._running = self._run(target.ready)
                self.busy.add(target.target)
        for truncation in batch.due_truncations:
            if truncation.target not in self.busy:
                self._empty(truncation)
        for restart in batch.restarts:
            if restart.target not in self.busy:
                self._restart(restart)

    def _restart(self, restart: Restart) -> None:
        """What is due of a snapshot that began again, one step of it."""
        self.moved, rows = True, self.state().rows
        if restart.stage is Stage.FOUND:
            self._mark(restart, BEGUN)
        elif restart.stage is Stage.UNPROVEN:
            may = restart.is_last and self.brings_rows(restart.shard)
            if not may or not any(map(self._rows_before, rows.partitions_of(restart.shard))):
                self._mark(restart, VOID)
            elif any(
                self._has_snapshot_row(*peer)
                for peer in peers(restart, self.decisions, rows).items()
            ):
                self._mark(restart, BEGUN)
            else:
                self.stuck.add(restart.shard)
        elif restart.removal is None:
            self._mark(restart, UNDONE)
        else:
            self._running = self._remove_all(restart, restart.removal)
            self.busy.add(restart.target)

    def _rows_before(self, place: Place) -> list[Row]:
        """The rows of a shard that are applied in a partition."""
        log, end = self.kafka.logs[place.whole], self.state().rows.at(place).offset
        rows = [row for _, row in log.committed(0, end) if isinstance(row, Row)]
        return [row for row in rows if place.shard in (None, row.shard)]

    def _has_snapshot_row(self, place: Place, peer: tuple[ShardId, Gate]) -> bool:
        shard, gate = peer
        log = self.kafka.logs[place.whole]
        return any(
            isinstance(row, Row)
            and (row.shard, row.position, row.read) == (shard, gate.position, True)
            and row.ts_ms >= gate.began_ms
            for _, row in log.committed(0, log.stable_end)
        )

    def _remove_all(self, restart: Restart, removal: TargetStatement) -> Iterator[None]:
        yield from self.target.change_rows(removal.sql)
        self._mark(restart, UNDONE)

    def _mark(self, restart: Restart, mark: int) -> None:
        self.target.executed.add(restart.key(mark))
        for shard in restart.mates:
            self.truncations.pop(shard, None)

    def brings_rows(self, shard: ShardId) -> bool:
        """Whether the latest snapshot of a shard's source was to read rows."""
        return True

    def _run(self, ready: Sequence[OpenStatement]) -> Iterator[None]:
        for statement in ready:
            try:
                yield from self.target.parts(statement.key, statement.statement.sql)
            except Rejected as error:
                if not self._is_early(statement):
                    raise
                self.refused[statement.key] = str(error), self._applied_so_far()
            else:
                self.refused.pop(statement.key, None)

    def _applied_so_far(self) -> object:
        """What the target has: a refused statement rests until that is more.

        The sink tries it again after a pause; here that would be for ever where the rows that it
        waits for stand behind a hold.
        """
        offsets = {place: applied.offset for place, applied in self.applied.items()}
        return offsets, frozenset(self.target.executed)

    def _is_early(self, statement: OpenStatement) -> bool:
        """Whether a debt was tried before rows came that are read again, to let others pass."""
        key, rows = statement.key, self.state().rows
        for target in self.decisions.targets.values():
            executed = self.target.executed
            left = {k: s for k, s in target.statements.items() if k not in executed}
            if key in left:
                lacking = awaited_rereads(target, key, left[key], rows)
                held = any(stands_held(target.shards[name], rows) for name in lacking)
                return held or (bool(lacking) and holds_rows_up(key, left[key], left))
        return False

    def _empty(self, truncation: Truncation) -> None:
        target = self.decisions.targets[truncation.target]
        removal = emptying(target, (truncation.shard,), bindings(target, self.target.executed))
        if removal is None:
            del self.truncations[truncation.shard]
            self.unknown_rows.add(truncation.shard)
            return
        self._running = self._remove(truncation, removal)
        self.busy.add(truncation.target)

    def _remove(self, truncation: Truncation, removal: TargetStatement) -> Iterator[None]:
        moves = moves_behind(truncation, self.kafka, self.state().rows)
        yield from self._move([m for m in moves if m.end < m.start])
        yield from self.target.change_rows(removal.sql)
        yield from self._move(moves_behind(truncation, self.kafka, self.state().rows))
        del self.truncations[truncation.shard]

    def _move(self, moves: Sequence[Move]) -> Iterator[None]:
        yield
        self.target.move(moves)
        for move in moves:
            self.applied[move.place] = Applied(move.end)
            if move.end < move.start:
                self.catch_up.forget(move.place)
        yield

    def _meet(self, place: Place, offset: int, row: Row) -> None:
        """The first TRUNCATE of a shard is carried out first."""
        known = self.truncations.get(row.shard)
        if known is None or row.position <= known.position:
            [(target, _)] = self.decisions.streams[place.stream]
            seen, reading = self.decisions.seen, self.watermarks.number + 1
            self.truncations[row.shard] = Truncation(
                target, row.shard, place, offset, row.position, seen, reading
            )

    def _apply(self, batch: BatchPlan) -> Iterator[None]:
        for task in batch.tasks:
            if task.stream.undoes:
                self._take_back(task)
            else:
                self._apply_task(task)
            yield

    def _take_back(self, task: RangeTask) -> None:
        """In one transaction with the partition's way back."""
        place = task.place
        log = self.kafka.logs[place.whole]
        for _, row in log.committed(task.start_offset, task.end_offset):
            assert isinstance(row, Row)
            if task.part in (None, row.shard):
                segment = self._segment(task, row)
                if not (segment.undone or segment.passed_over):
                    self._undo(row)
        self.target.move([Move(place, task.end_offset, task.start_offset, {})])
        self.applied[place] = Applied(task.start_offset)
        self.catch_up.forget(place)
        self.moved = True

    def _undo(self, row: Row) -> None:
        self.target.delete(row.key)

    def _apply_task(self, task: RangeTask) -> None:
        place = task.place
        numbers: dict[int, int] = {}
        standing = Applied(task.end_offset)
        log = self.kafka.logs[place.whole]
        for offset, row in log.committed(task.start_offset, task.end_offset):
            assert isinstance(row, Row)
            if task.part is not None and row.shard != task.part:
                continue
            stop, began = task.stream.stop, task.stream.stop_began_ms
            if stop is not None and is_behind(cast(Any, row), row.position, stop, began):
                standing = Applied(offset, row.position)
                break
            segment = self._segment(task, row)
            if segment.passed_over or segment.undone:
                if segment.passed_over:
                    self.target.passed_over.add(row.number)
                numbers[offset] = row.number
                continue
            if row.truncates:
                if not task.stream.keeps_truncated:
                    self._meet(place, offset, row)
                    standing = Applied(offset, row.position)
                    break
                numbers[offset] = row.number
                continue
            try:
                self._write(task, row)
            except Rejected:
                if not self._is_passing(row):
                    raise
                self.stuck.add(row.shard)
                standing = Applied(offset, row.position)
                break
            numbers[offset] = row.number
        self.target.advance(place, task.start_offset, standing.offset, numbers)
        self.applied[place] = standing
        if standing.offset > task.start_offset or standing.next_position is not None:
            self.moved = True

    def _is_passing(self, row: Row) -> bool:
        """Whether a value has a type that its shard gave up before its hold was ended.

        The shard's server converted its rows; what became of this value is not known here.
        """
        for target in self.decisions.targets.values():
            gates = target.shards[row.shard].gates
            index = sum(g.position <= row.position for g in gates) - 1
            kinds = {c.id: FAMILIES[c.column.type.name] for c in gates[index].columns}
            for later in gates[index + 1 :]:
                if any(
                    kinds.get(c.id, "") not in ("", FAMILIES[c.column.type.name])
                    for c in later.columns
                ):
                    released = [g.released_by or 0 for g in gates[: index + 1]]
                    return max(released, default=0) >= later.version
        return False

    def _segment(self, task: RangeTask, row: Row) -> Segment:
        before = [
            s
            for s in task.stream.segments
            if is_behind(cast(Any, row), row.position, s.start, s.began_ms)
        ]
        if not before:
            raise Rejected(f"{row} stands before every segment")
        return before[-1]

    def _write(self, task: RangeTask, row: Row) -> None:
        segment = self._segment(task, row)
        own = of_shard(segment.columns)
        if not segment.live or {c.column.name for c in own} != set(row.names):
            raise Rejected(f"{row} does not have the columns of its segment")
        if row.image is None:
            self.target.delete(row.key)
            return
        written: dict[str, object] = {}
        for c in segment.added:
            if c.id in task.bindings and (fill := added_value(c)) is not None:
                number = fill.value is not None and FAMILIES[c.column.type.name] == "number"
                written[task.bindings[c.id].name] = int(fill.value) if number else fill.value
        for c in segment.columns:
            if c.id in task.bindings:
                part = origin_part(c.id)
                value = part.value_in(row.shard) if part else row.image[c.column.name]
                written[task.bindings[c.id].name] = value
        self.target.upsert(row.key, written)


class PartialSink(ToySink):
    """Asks for the ends of some partitions only, now these and now those; seldom for all.

    It asks for those of new shards at once. Of some partitions it only knows a row that it has
    seen, not the rows and the commit marker behind it.
    """

    def _asked(self, whole: set[Place]) -> set[Place]:
        if self.passes % 4 == 0:
            return whole
        return {place for place in whole if crc32(f"{place} {self.passes}".encode()) % 2}

    def _seen_ends(self, asked: set[Place]) -> dict[Place, int]:
        found = {}
        for place in asked & self.watermarks.ends.keys():
            known, log = self.watermarks.ends[place], self.kafka.logs[place]
            rows = [offset for offset, _ in log.committed(known, log.stable_end)]
            if rows and (which := crc32(f"{self.passes} {place}".encode()) % 4):
                found[place] = rows[which % len(rows)] + 1
        return found


class StaleSink(ToySink):
    """Reads watermarks before decisions."""

    stale = True
