"""Folds a pipeline's records again, and compares the result with what its agents wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shardmerge.agents.handling.handlers import CoordinatorHandler, TrackerHandler
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.operator_commands import OperatorCommand

from .comparing import (
    Changes,
    Comparison,
    Decisions,
    Difference,
    Expecting,
    Latest,
    Reader,
    Requests,
)
from .log import OnePartition, Refold


@dataclass(frozen=True, slots=True)
class Verification:
    """What was compared.

    Attributes:
        folded: Records of the schema-log.
        events: Records that the tracker folded; None when it was not.
        comparisons: One per topic.
        others: How many records the folds give for topics that are not compared.
    """

    folded: int
    events: int | None
    comparisons: tuple[Comparison, ...]
    others: Counter[str]

    @property
    def differences(self) -> tuple[Difference, ...]:
        """The differences in all topics."""
        return tuple(d for comparison in self.comparisons for d in comparison.differences)


def verify(
    pipeline: Pipeline, log: Iterable[StoredRecord], reader: Reader, *, from_sources: bool
) -> Verification:
    """Compare what the folds give with ddl, joined-schemas, signals and perhaps the schema-log.

    Args:
        pipeline: As it was when the records were written.
        log: The schema-log in the order of ``log.in_time``.
        reader: Reads the other topics.
        from_sources: Whether the tracker is folded as well, over the sources' schema changes and
            the commands. Only the tracker gives ``ignored`` decisions, about statements that
            concern no routed shard.

    Raises:
        ContractError: A record that is folded is not ours.
    """
    names = [source.name for source in pipeline.sources]
    schema_log = topics.schema_log(pipeline).name
    ddl, joined = topics.ddl(pipeline).name, topics.joined_schemas(pipeline).name
    signals = topics.signals(pipeline).name
    compared: dict[str, Expecting] = {}
    others: Counter[str] = Counter()

    def fold(refold: Refold, record: StoredRecord) -> None:
        effects = refold.effects(record)
        refold.rows.take(effects)
        for send in effects.sends:
            if (expecting := compared.get(send.topic)) is None:
                others[send.topic] += 1
            else:
                expecting.expect(send, record)

    events = None
    compared[ddl] = Decisions(ddl, reader, without=() if from_sources else names)
    compared[joined] = Latest(joined, reader)
    compared[signals] = Requests(signals, reader)
    if from_sources:
        changes = Changes(schema_log, reader)
        compared = {schema_log: changes, **compared}
        tracker, events = Refold(TrackerHandler(pipeline)), 0
        for record in _as_tracked(pipeline, reader, changes.told_after):
            fold(tracker, record)
            events += 1
    partitions, coordinator, folded = OnePartition(), Refold(CoordinatorHandler(pipeline)), 0
    for record in log:
        partitions.check(record)
        fold(coordinator, record)
        folded += 1
    comparisons = tuple(each.compare() for each in compared.values())
    return Verification(folded, events, comparisons, others)


def _as_tracked(
    pipeline: Pipeline, reader: Reader, told_after: dict[int, int]
) -> Iterator[StoredRecord]:
    """The tracker's input in an order that has the effect of the real one.

    Sources do not touch each other's tables, so they come one after the other. A command touches
    its shard's table only, so it comes between the source's records where the log says that it did.
    """
    waiting: dict[str, list[tuple[int, StoredRecord]]] = {s.name: [] for s in pipeline.sources}
    for record in reader(topics.commands(pipeline).name):
        source_name = _source_of_command(record)
        if source_name not in waiting or record.offset not in told_after:
            yield record
        else:
            waiting[source_name].append((told_after[record.offset], record))
    for source in pipeline.sources:
        commands = waiting[source.name]
        for event in reader(topics.schema_changes(pipeline, source.name).name):
            yield from (record for after, record in commands if after < event.offset)
            commands = [each for each in commands if each[0] >= event.offset]
            yield event
        yield from (record for _, record in commands)


def _source_of_command(record: StoredRecord) -> str:
    """The source of a command's shard; "" without a shard, and for what the fold will refuse."""
    try:
        command = codec.decode(record.value or b"")
    except ContractError:
        return ""
    shard = command.shard if isinstance(command, OperatorCommand) else None
    return shard.source if shard is not None else ""
