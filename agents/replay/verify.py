"""A pipeline's records folded again and compared with what its agents wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from shardmerge.agents.folds import CoordinatorFold, TrackerFold
from shardmerge.connectors.stored_record import StoredRecord
from shardmerge.schemas import topics
from shardmerge.schemas.pipeline import Pipeline

from .comparing import Changes, Comparison, Decisions, Difference, Expecting, Latest, Reader
from .log import OnePartition, Refold


@dataclass(frozen=True, slots=True)
class Verification:
    """What was compared.

    Attributes:
        folded: Records of the schema-log.
        events: Records of the sources' schema-change topics; None when they were not folded.
        comparisons: One per topic.
        others: How many records the folds give for topics that are not compared.
    """

    folded: int
    events: int | None
    comparisons: tuple[Comparison, ...]
    others: Counter[str]

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Of all topics."""
        return tuple(d for comparison in self.comparisons for d in comparison.differences)


def verify(
    pipeline: Pipeline, log: Iterable[StoredRecord], reader: Reader, *, from_sources: bool
) -> Verification:
    """Compare what the folds give with ddl, joined-schemas and, from the sources, the schema-log.

    Args:
        pipeline: As it was when the records were written.
        log: The schema-log in the order of ``log.in_time``.
        reader: Reads the other topics.
        from_sources: Whether the tracker is folded as well, over the sources' schema changes. Only
            it tells the decisions about statements that concern no routed shard.

    Raises:
        ContractError: A record of the schema-log or of a source is not ours.
    """
    ddl, joined = topics.ddl(pipeline).name, topics.joined_schemas(pipeline).name
    compared: dict[str, Expecting] = {}
    if from_sources:
        schema_log = topics.schema_log(pipeline).name
        compared[schema_log] = Changes(schema_log, reader)
    compared[ddl] = Decisions(ddl, reader, ignored=from_sources)
    compared[joined] = Latest(joined, reader)
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
    if from_sources:
        tracker, events = Refold(TrackerFold(pipeline)), 0
        for source in pipeline.sources:
            for record in reader(topics.schema_changes(pipeline, source.name).name):
                fold(tracker, record)
                events += 1
    partitions, coordinator, folded = OnePartition(), Refold(CoordinatorFold(pipeline)), 0
    for record in log:
        partitions.check(record)
        fold(coordinator, record)
        folded += 1
    comparisons = tuple(each.compare() for each in compared.values())
    return Verification(folded, events, comparisons, others)
