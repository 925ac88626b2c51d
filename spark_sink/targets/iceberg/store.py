"""The pipeline's epoch and offsets in Iceberg's tables.

Each target table keeps its own state (``stored``). A control table without rows,
``<control database>.<pipeline>``, keeps four things in its properties: the writer epoch, the
pipeline's tables, what its row topics were when they were first read, and its rebuilds.

It also notes which tables a sink has made (``made``): if such a table is missing, somebody dropped
it, and it is not made again without a command.

Fencing: ``take_epoch`` raises the control table's epoch, then the epoch of every table. An older
writer that goes on is refused at its first commit, because each commit is a compare-and-set that
checks the table's epoch. If an older writer creates a table meanwhile, the table has the older
epoch; the new writer's first change raises it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from shardmerge.schemas.model.errors import TargetError, WriterReplaced
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.barrier.closing import Closing, Marks
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.row_topics import RowTopic
from shardmerge.spark_sink.planning.ranges import Advance
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord
from shardmerge.spark_sink.rebuilding.route_changes import RouteChange
from shardmerge.spark_sink.targets.iceberg.texts.decided import Decided
from shardmerge.spark_sink.targets.iceberg.texts.layout import Field, Layout
from shardmerge.spark_sink.targets.iceberg.texts.stored import (
    StoredState,
    from_json,
    state_key,
    to_json,
)
from shardmerge.spark_sink.targets.iceberg.texts.stored_rebuilds import (
    REBUILDS,
    changes_of,
    marks_of,
    rebuilds_of,
)
from shardmerge.spark_sink.targets.interface import closed_error, taken_over

from .tables import IcebergCatalog, IcebergTable, Moved, Uncertain

T = TypeVar("T")
_ATTEMPTS = 20
_EPOCH, _TABLES = "shardmerge.epoch", "shardmerge.tables"
_ROW_TOPICS, _MADE = "shardmerge.row-topics", "shardmerge.made"


class IcebergStore:
    """The store of one pipeline; see the module's text.

    Args:
        open_catalog: Called when the catalog is first needed, since Spark may still be starting.

    Attributes:
        control: The control table; an argument, too.
        pipeline: The pipeline's name, or what stands for it (``RebuildRecord.sink_name``).
    """

    def __init__(
        self, open_catalog: Callable[[], IcebergCatalog], control: TargetTable, pipeline: str
    ) -> None:
        self._open_catalog = open_catalog
        self._catalog: IcebergCatalog | None = None
        self.control, self.pipeline = control, pipeline
        self._key = state_key(pipeline)
        self._seen: IcebergTable | None = None
        self._known_swaps: int | None = None
        """The latest swap when the epoch was taken, until ``marks`` has told it."""

    @property
    def catalog(self) -> IcebergCatalog:
        """The catalog; opened when it is first needed."""
        if self._catalog is None:
            self._catalog = self._open_catalog()
        return self._catalog

    def prepare(self) -> None:
        """Make the control table, or what an earlier version's lacks, where it is missing."""
        repeated(lambda: self._prepare({_EPOCH: "0", _TABLES: "[]", REBUILDS: "[]"}))

    def begin(self, table: TargetTable, row_topics: Mapping[str, RowTopic]) -> None:
        """Make the control table of a sink that has one table, which exists.

        Args:
            table: The table.
            row_topics: See ``row_topics``.
        """
        self._prepare(
            {
                _EPOCH: "0",
                _TABLES: json.dumps([[table.database, table.table]]),
                _ROW_TOPICS: json.dumps(row_topics),
                REBUILDS: "[]",
            }
        )

    def _prepare(self, properties: Mapping[str, str]) -> None:
        control = self.catalog.find(self.control)
        if control is None:
            layout = Layout((Field(1, "pipeline", "string"),), 1)
            self.catalog.create(self.control, layout, properties)
        elif control.property(REBUILDS) is None:
            control.commit({REBUILDS: "[]"})

    def take_epoch(self) -> int:
        """Become the writer, with the next epoch; every earlier one is fenced from now on."""

        def take() -> int:
            control = self.catalog.load(self.control)
            # A rebuild gives its table a later epoch than any writer has.
            of_tables = [state.epoch for state in self.states().values()]
            epoch = max([_epoch_of(control), *of_tables]) + 1
            control.commit({_EPOCH: str(epoch)})
            self._known_swaps = swaps_of(control)
            return epoch

        epoch = repeated(take)
        fenced = [
            table
            for table in self.tables()
            if repeated(lambda table=table: self._fence(table, epoch))  # type: ignore[misc]
        ]
        self.note_made(fenced, epoch)
        return epoch

    def epoch(self) -> int:
        """The current writer's epoch; 0 before the first."""
        return _epoch_of(self.catalog.load(self.control))

    def offsets(self) -> Mapping[Partition, int]:
        """Partition → next offset to apply."""
        return {
            partition: offset
            for state in self.states().values()
            for partition, offset in state.offsets.items()
        }

    def rebuilds(self) -> list[RebuildRecord]:
        """The rebuilds of the pipeline, by number."""
        return rebuilds_of(self.catalog.load(self.control).property(REBUILDS))

    def marks(self) -> Marks:
        """See the protocol. Each table has the mark that closes it, too (``StoredState``).

        The first answer tells a writer of the swaps that it knew when it took its epoch. The table
        of a later swap has a later epoch, so that the writer must begin anew.
        """
        seen = self._seen
        self._seen = seen.refreshed() if seen is not None else self.catalog.load(self.control)
        marks = marks_of(rebuilds_of(self._seen.property(REBUILDS)))
        known, self._known_swaps = self._known_swaps, None
        return marks if known is None else Marks(marks.closed, known)

    def route_changes(self) -> tuple[RouteChange, ...]:
        """See the protocol."""
        return changes_of(self.rebuilds())

    def rows(self) -> dict[TargetTable, int]:
        """Target → row events applied to it."""
        return {table: state.rows for table, state in self.states().items()}

    def row_topics(self) -> dict[str, RowTopic]:
        """Row topic → what it was when the pipeline first read it."""
        return _row_topics_of(self.catalog.load(self.control))

    def keep_row_topics(self, epoch: int, row_topics: Mapping[str, RowTopic]) -> None:
        """Store the ids and numbers of partitions of row topics, in one commit.

        Raises:
            WriterReplaced: Another writer took over.
        """

        def keep() -> None:
            control = self.fenced_control(epoch)
            control.commit({_ROW_TOPICS: json.dumps({**_row_topics_of(control), **row_topics})})

        repeated(keep)

    def move(self, epoch: int, moves: Iterable[Advance], target: TargetTable | None = None) -> None:
        """Set offsets of one target's partitions, forward or back, in one commit."""
        by_target: dict[TargetTable, list[Advance]] = {}
        for move in moves:
            by_target.setdefault(move.target, []).append(move)
        for one, of_target in by_target.items():
            repeated(lambda t=one, m=of_target: self._move(epoch, t, m))  # type: ignore[misc]

    def _move(self, epoch: int, target: TargetTable, moves: Sequence[Advance]) -> None:
        table = self.catalog.load(target)
        state = self.writable(table, epoch)
        # The offsets are moved already if the acknowledgement of this commit was lost.
        if not state.stands_behind(moves):
            table.commit(self.properties(state.advanced(moves)))

    def tables(self) -> list[TargetTable]:
        """The pipeline's tables, including those that are yet to be created."""
        return _tables_of(self.catalog.load(self.control))

    def states(self) -> dict[TargetTable, StoredState]:
        """The state of every table that exists."""
        found = {table: self.catalog.find(table) for table in self.tables()}
        return {table: self.state_of(there) for table, there in found.items() if there is not None}

    def state_of(self, table: IcebergTable) -> StoredState:
        """The state that a reading of a table holds."""
        return from_json(table.property(self._key))

    def fenced(self, table: IcebergTable, epoch: int) -> StoredState:
        """The state that a reading of a table holds, for a writer that goes on from it.

        Raises:
            WriterReplaced: A later writer took over.
            TargetClosed: A rebuilt table took the place of the one that the writer knows: the table
                has a later epoch than any writer.
        """
        state = self.state_of(table)
        try:
            return state.fenced(epoch)
        except WriterReplaced:
            if self.epoch() != epoch:
                raise
            raise closed_error(table.name, Closing.SWAPPING) from None

    def writable(self, table: IcebergTable, epoch: int) -> StoredState:
        """As ``fenced``, for a writer that changes rows, columns or offsets.

        Raises:
            WriterReplaced: A later writer took over.
            TargetClosed: The table is closed, or see ``fenced``.
        """
        state = self.fenced(table, epoch)
        if state.closed is not None:
            raise closed_error(table.name, state.closed)
        return state

    def properties(self, state: StoredState) -> dict[str, str]:
        """A state as table properties."""
        return {self._key: to_json(state)}

    def register(self, table: TargetTable, epoch: int) -> None:
        """Note that the pipeline has a table, before the table is created.

        Raises:
            WriterReplaced: Another writer took over.
        """

        def note() -> None:
            control = self.fenced_control(epoch)
            known = _tables_of(control)
            if table not in known:
                control.commit({_TABLES: _names_json([*known, table])})

        repeated(note)

    def made(self) -> list[TargetTable]:
        """The tables that a sink of the pipeline has made, sorted; also those that are missing.

        There is none before a sink has prepared the control table.
        """
        control = self.catalog.find(self.control)
        return [] if control is None else _tables_of(control, _MADE)

    def note_made(self, tables: Iterable[TargetTable], epoch: int) -> None:
        """Note that tables were made.

        Raises:
            WriterReplaced: Another writer took over.
        """

        def note() -> None:
            control = self.fenced_control(epoch)
            known = _tables_of(control, _MADE)
            if more := set(tables) - set(known):
                control.commit({_MADE: _names_json([*known, *more])})

        repeated(note)

    def forget_made(self, table: TargetTable) -> None:
        """Take back ``note_made``: the table may be made again."""

        def forget() -> None:
            control = self.catalog.load(self.control)
            left = [each for each in _tables_of(control, _MADE) if each != table]
            control.commit({_MADE: _names_json(left)})

        repeated(forget)

    def fenced_control(self, epoch: int) -> IcebergTable:
        """A reading of the control table.

        Raises:
            WriterReplaced: Another writer took over.
        """
        control = self.catalog.load(self.control)
        if (current := _epoch_of(control)) != epoch:
            raise taken_over(current, epoch)
        return control

    def _fence(self, name: TargetTable, epoch: int) -> bool:
        """Raise a table's epoch. Returns whether it is there, and was made by a sink."""
        table = self.catalog.find(name)
        if table is None:
            return False
        state = self.state_of(table)
        # A later epoch than ours may have been set meanwhile; it stays.
        if state.epoch < epoch:
            decided = state.decided
            if decided is None and state.done:
                # The last sink did not know what it is. What is there counts.
                decided = Decided(table.layout, table.sequence)
            table.commit(self.properties(replace(state, epoch=epoch, decided=decided)))
        return bool(state.done)


def repeated(action: Callable[[], T]) -> T:
    """Repeat an action that reads and commits until no other commit comes in between.

    Only for an action that may be repeated after a commit whose acknowledgement was lost.

    Raises:
        TargetError: Other commits come all the time (``retryable``); or the action's own error.
    """
    for _ in range(_ATTEMPTS):
        try:
            return action()
        except (Moved, Uncertain):
            continue
    raise TargetError(
        "somebody else commits to the table all the time",
        retryable=True,
        hint="stop what writes to the target beside the sink",
        code="SM-3107",
    )


def swaps_of(control: IcebergTable) -> int:
    """The number of the latest rebuild that is in place, in a reading of the control table."""
    return marks_of(rebuilds_of(control.property(REBUILDS))).swaps


def _epoch_of(control: IcebergTable) -> int:
    return int(control.property(_EPOCH) or 0)


def _row_topics_of(control: IcebergTable) -> dict[str, RowTopic]:
    stored = json.loads(control.property(_ROW_TOPICS) or "{}")
    return {topic: RowTopic(*facts) for topic, facts in stored.items()}


def _tables_of(control: IcebergTable, key: str = _TABLES) -> list[TargetTable]:
    return [TargetTable(d, t) for d, t in json.loads(control.property(key) or "[]")]


def _names_json(tables: Iterable[TargetTable]) -> str:
    return json.dumps([[table.database, table.table] for table in sorted(tables)])
