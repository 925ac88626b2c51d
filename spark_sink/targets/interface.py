"""What the sink's driver asks of a kind of target; one contract test suite runs against each.

A target keeps, beside its tables, what the sink must never lose: the writer epoch, the offset up
to which each row partition is applied, and the journal of executed statements. Rows and the
offsets that they move commit together, whatever the kind:

* MySQL: control tables in the target's server, moved in the transaction of the rows.
* Iceberg: properties of each table, moved by the same commit of its metadata as the rows.

A writer of an earlier epoch is refused everywhere: its batches, its statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from shardmerge.schemas.model.errors import WriterReplaced
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.row_topics import RowTopic
from shardmerge.spark_sink.planning.ranges import Advance, RangeResult, RangeTask, TaskFailure

State: TypeAlias = Literal["intent", "done", "refused"]
StatementPlace: TypeAlias = tuple[TargetTable, int, int]
"""Target, version, ordinal."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What became of a statement. ``error`` says why it was refused, "" otherwise."""

    state: State
    error: str = ""


def taken_over(current: int, epoch: int) -> WriterReplaced:
    """The error of a writer whose epoch is not the current one any more."""
    return WriterReplaced(
        f"another writer took over (writer epoch {current}, this one is {epoch})",
        hint="only one sink may run per pipeline: stop this one",
    )


class WriterState(Protocol):
    """The pipeline's epoch and offsets in the target. Belongs to the driver's thread.

    Every method raises ``TargetError``, with ``retryable`` when the target is away.
    """

    def prepare(self) -> None:
        """Make what is missing to keep the state in."""
        ...

    def take_epoch(self) -> int:
        """Become the writer: the next epoch. Nothing of an earlier one commits afterwards."""
        ...

    def epoch(self) -> int:
        """The current writer's epoch; 0 before the first."""
        ...

    def offsets(self) -> Mapping[Partition, int]:
        """Partition → next offset to apply, of every one that was ever applied."""
        ...

    def rows(self) -> dict[TargetTable, int]:
        """Target → row events applied to it."""
        ...

    def row_topics(self) -> Mapping[str, RowTopic]:
        """Row topic → what it was when the pipeline first read it."""
        ...

    def keep_row_topics(self, epoch: int, row_topics: Mapping[str, RowTopic]) -> None:
        """Store what row topics are, beside those that are stored.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        ...

    def move(self, epoch: int, moves: Iterable[Advance]) -> None:
        """Set offsets of one target's partitions, forward or back, in one step.

        Raises:
            WriterReplaced: Another writer took over: the epoch, or an offset, is not the expected
                one.
            TargetError: The target cannot be written now (``retryable``).
        """
        ...


def check_epoch(state: WriterState, epoch: int) -> None:
    """Be sure that an epoch is the current one.

    Raises:
        WriterReplaced: It is not.
        TargetError: The target is away (``retryable``).
    """
    if (current := state.epoch()) != epoch:
        raise taken_over(current, epoch)


class StatementJournal(Protocol):
    """Executes statements so that none runs twice, whatever crashes when."""

    def load(self) -> Mapping[StatementPlace, JournalEntry]:
        """Every statement of the pipeline that was begun."""
        ...

    def execute(
        self, target: TargetTable, version: int, ordinal: int, statement: TargetStatement
    ) -> JournalEntry:
        """Execute a statement and verify its effect, or find out that it was executed.

        A table, or a column, that is there before its statement is taken when it accepts the rows.
        A statement that changes the rows of a shard (``TargetStatement.shard``) may be executed
        again after a crash: it finds what is left.

        Returns:
            ``done``, or ``refused`` with the reason; the next call tries again.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot execute it now (``retryable``).
        """
        ...

    def note(self, target: TargetTable, version: int, ordinal: int, what: str) -> None:
        """Store, as if a statement were done, what is none: its ordinal is negative.

        Args:
            target: Under which, with version and ordinal, ``load`` tells it.
            version: See there.
            ordinal: See there.
            what: For people who read the journal.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        ...

    def stage(self, target: TargetTable) -> str:
        """What the target says of the statement of ours that it executes on a table now.

        "" when it says nothing. Raises ``TargetError`` when it does not answer.
        """
        ...

    def change_rows(self, target: TargetTable, statement: TargetStatement) -> None:
        """Execute a statement that changes rows, which is in no decision.

        Done again after a crash it finds what is left.

        Raises:
            TargetLost: The sink must end; ``WriterReplaced`` when another writer took over.
            TargetError: The target refuses it, or cannot execute it now (``retryable``).
        """
        ...


class Batches(Protocol):
    """Applies the tasks of a plan. Belongs to the driver's thread."""

    def start(self) -> None:
        """Begin to start what applying needs."""
        ...

    @property
    def orders_partitions(self) -> bool:
        """Whether tasks with a ``step`` can be applied (``ordered_partitions``)."""
        ...

    def bound(self, records: int) -> int:
        """How many of so many records the next batch may have."""
        ...

    def run(self, tasks: Sequence[RangeTask]) -> Iterator[RangeResult | TaskFailure]:
        """Apply ranges up to their ends, gates or rows that cannot be applied.

        Results come in any order; what a result tells is committed. After a ``TaskFailure``
        the stored offsets tell what is.
        """
        ...

    def stop(self) -> None:
        """Let go of everything that applying kept open."""
        ...


class Target(Protocol):
    """One pipeline's target.

    Attributes:
        state, batches: See there.
    """

    @property
    def state(self) -> WriterState:
        """Epoch and offsets."""
        ...

    @property
    def batches(self) -> Batches:
        """Applies rows."""
        ...

    def journal(self, epoch: int) -> StatementJournal:
        """The journal for the thread that ``state`` belongs to."""
        ...

    def journal_of_thread(self, epoch: int) -> StatementJournal:
        """Another one, for the thread that calls this."""
        ...

    def close(self) -> None:
        """Stop the batches, end the connections of ``state`` and ``journal``."""
        ...
