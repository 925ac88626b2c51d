"""The interface between the sink's driver and a target; every kind passes one contract suite.

Besides its tables a target keeps what the sink must never lose: the writer epoch, the offset up to
which each row partition is applied, and the journal of executed statements. In every kind of target
rows are committed together with the offsets that they move:

* MySQL: offsets are in control tables on the target's server, in the same transaction as the rows.
* Iceberg: offsets are in properties of each table, in the same metadata commit as the rows.

Batches and statements of a writer with an earlier epoch are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from shardmerge.schemas.model.errors import TargetClosed, WriterReplaced
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.spark_sink.barrier.closing import Closing, Marks
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.row_topics import RowTopic
from shardmerge.spark_sink.kafka.windows.window import Kept, ReadWindows
from shardmerge.spark_sink.planning.ranges import Advance, RangeResult, RangeTask, TaskFailure
from shardmerge.spark_sink.rebuilding.route_changes import RouteChange

from .drift_interface import DriftStore, TableLooks
from .lease_interface import Lease
from .load_interface import Loads

State: TypeAlias = Literal["intent", "done", "refused"]
StatementPlace: TypeAlias = tuple[TargetTable, int, int]
"""Target, version, ordinal."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What became of a statement.

    Attributes:
        error: Why it was refused; "" otherwise.
        code: The error's code; "" for the code of a refusal by the server.
    """

    state: State
    error: str = ""
    code: str = ""


def taken_over(current: int, epoch: int) -> WriterReplaced:
    """The error for a writer whose epoch is no longer the current one."""
    return WriterReplaced(
        f"another writer took over (writer epoch {current}, this one is {epoch})",
        hint="only one sink may run per pipeline: stop this one",
        code="SM-3103",
    )


def moved_error(move: Advance, stored: int) -> WriterReplaced:
    """The error for a partition whose stored offset is not where a move of it begins."""
    whose = f" of {move.part}" if move.part is not None else ""
    return WriterReplaced(
        f"another writer moved {move.place}{whose}: its offset is {stored},"
        f" expected {move.start_offset}",
        hint="only one sink may run per pipeline; it starts again from the stored offsets",
        code="SM-3103",
    )


def closed_error(target: TargetTable | None, why: Closing = Closing.CUT_OVER) -> TargetClosed:
    """The error for rows and statements of a target that the sink may not change."""
    return TargetClosed(
        f"{target} is not changed: {why.clause}", retryable=True, hint=why.hint, code=why.code
    )


class WriterState(Protocol):
    """The pipeline's epoch and offsets in the target. Belongs to the driver's thread.

    Every method raises ``TargetError``, with ``retryable`` when the target is away.
    """

    def prepare(self) -> None:
        """Make the database and tables for the state where they are missing."""
        ...

    def take_epoch(self) -> int:
        """Become the writer, with the next epoch; writers of earlier epochs cannot commit then."""
        ...

    def epoch(self) -> int:
        """The current writer's epoch; 0 before the first."""
        ...

    def offsets(self) -> Mapping[Partition, int]:
        """Partition → next offset to apply; every partition that was ever applied."""
        ...

    def marks(self) -> Marks:
        """The targets that the sink may not change, and the latest rebuild that is in place."""
        ...

    def route_changes(self) -> Sequence[RouteChange]:
        """What the rebuilds have changed in routes whose tables are in place, in order."""
        ...

    def rows(self) -> dict[TargetTable, int]:
        """Target → row events applied to it."""
        ...

    def row_topics(self) -> Mapping[str, RowTopic]:
        """Row topic → what it was when the pipeline first read it."""
        ...

    def keep_row_topics(self, epoch: int, row_topics: Mapping[str, RowTopic]) -> None:
        """Store the id and the number of partitions of each of these topics; others stay stored.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        ...

    def move(self, epoch: int, moves: Iterable[Advance], target: TargetTable | None = None) -> None:
        """Set offsets of one target's partitions, forward or back, atomically.

        Args:
            epoch: Of this writer.
            moves: The offsets.
            target: Must not be closed; None: it does not matter whether it is.

        Raises:
            TargetClosed: The target was cut over, or changes places with its shadow.
            WriterReplaced: Another writer took over: the epoch, or an offset, is not the expected
                one.
            TargetError: The target cannot be written now (``retryable``).
        """
        ...


def check_epoch(state: WriterState, epoch: int) -> None:
    """Check that an epoch is the current one.

    Raises:
        WriterReplaced: It is not.
        TargetError: The target is away (``retryable``).
    """
    if (current := state.epoch()) != epoch:
        raise taken_over(current, epoch)


class StatementJournal(Protocol):
    """Executes statements so that none runs twice, even after a crash at any point."""

    def load(self) -> Mapping[StatementPlace, JournalEntry]:
        """Every statement of the pipeline that was begun."""
        ...

    def execute(
        self, target: TargetTable, version: int, ordinal: int, statement: TargetStatement
    ) -> JournalEntry:
        """Execute a statement and verify its effect, or find out that it was executed.

        If the table or column that a statement makes exists already, it is used, provided that it
        accepts the rows. A statement that changes the rows of a shard (``TargetStatement.shard``)
        may be executed again after a crash: it then changes the rows that are left.

        Returns:
            ``done``, or ``refused`` with the reason; the next call tries again.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot execute it now (``retryable``).
        """
        ...

    def note(self, target: TargetTable, version: int, ordinal: int, what: str) -> None:
        """Store a mark that is no statement; ``load`` returns it like a statement that is done.

        Args:
            target: With version and ordinal, the place under which ``load`` returns the mark.
            version: See ``target``.
            ordinal: See ``target``; negative.
            what: Text for people who read the journal.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        ...

    def stage(self, target: TargetTable) -> str:
        """What the target reports about our statement that it executes on a table now.

        "" when it reports nothing. Raises ``TargetError`` when it does not answer.
        """
        ...

    def change_rows(self, target: TargetTable, statement: TargetStatement) -> None:
        """Execute a statement that changes rows, and is in no decision.

        Executed again after a crash it changes the rows that are left.

        Raises:
            TargetLost: The sink must end; ``WriterReplaced`` when another writer took over.
            TargetError: The target refuses it, or cannot execute it now (``retryable``).
        """
        ...


class Batches(Protocol):
    """Applies the tasks of a plan. Belongs to the driver's thread."""

    def start(self) -> None:
        """Begin to start what is needed to apply rows, in the background, if that has not begun."""
        ...

    @property
    def orders_partitions(self) -> bool:
        """Whether tasks with a ``closure`` can be applied (``ordered_partitions``)."""
        ...

    def bound(self, records: int) -> int:
        """How many records the next batch may have: at most ``records``."""
        ...

    def expect(self, starts: Mapping[Partition, int], seen: Mapping[Partition, Kept]) -> None:
        """Begin to fetch rows that a task will probably ask for soon, if that saves time.

        Args:
            starts: Whole partition → the offset from which it is read. Replaces what was expected
                before; empty: nothing is expected any more.
            seen: Whole partition → its records that are there already.

        Raises:
            StackError: Kafka cannot be read.
        """
        ...

    @property
    def read_windows(self) -> ReadWindows | None:
        """Reads what shared topics got, in this process; None where that would not save time."""
        ...

    def run(
        self, tasks: Sequence[RangeTask], is_safe: Callable[[], bool]
    ) -> Iterator[RangeResult | TaskFailure]:
        """Apply ranges up to their ends, gates or rows that cannot be applied.

        ``is_safe`` is called before anything is committed and before the first result. It may wait
        for Kafka, so it is called as late as possible. If it says no, nothing is committed, and
        there are no results.

        Results come in any order, and what a result says is committed. After a ``TaskFailure``
        only the stored offsets tell what is committed.
        """
        ...

    def stop(self) -> None:
        """Close everything that was opened to apply rows."""
        ...


class Target(Protocol):
    """One pipeline's target."""

    @property
    def state(self) -> WriterState:
        """Epoch and offsets."""
        ...

    @property
    def batches(self) -> Batches:
        """Applies rows."""
        ...

    @property
    def loads(self) -> Loads:
        """First loads."""
        ...

    @property
    def lease(self) -> Lease:
        """The writer's lease."""
        ...

    @property
    def drift(self) -> DriftStore | None:
        """Differences of its tables; None for a kind of target whose tables are not looked at."""
        ...

    def looks_of_thread(self) -> TableLooks | None:
        """What compares tables, for the thread that calls this; None if ``drift`` is None."""
        ...

    def check_server(self) -> None:
        """Compare the target with what the pipeline file says of it.

        Raises:
            ConfigError: It is of another kind or version, whose DDL differs.
            TargetError: It does not answer.
        """
        ...

    def journal(self, epoch: int) -> StatementJournal:
        """The journal for the thread that ``state`` belongs to."""
        ...

    def journal_of_thread(self, epoch: int) -> StatementJournal:
        """Another journal, for the thread that calls this."""
        ...

    def close(self) -> None:
        """Stop the batches, end the connections of ``state`` and ``journal``."""
        ...
