"""Reads a target's log for the decisions of a table that is made anew (``shadow_fold``)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from shardmerge.cli.clients import topic_reader
from shardmerge.connectors.kafka.record_formats import record_format
from shardmerge.schemas.model.errors import ContractError, StackError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.origin import Origin
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.topic_records import logged_change
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord
from shardmerge.spark_sink.rebuilding.shadow import Shadow

from .shadow_fold import ShadowFold

_PATIENCE_S = 60.0
_PAUSE_S = 0.2


class OwnDecisions:
    """Follows the log of one target.

    Args:
        pipeline: Of the target.
        target: The target.
        version: See ``ShadowFold``.
        origin: Likewise.

    Attributes:
        fold: What the log says, as far as it is read.
    """

    def __init__(
        self, pipeline: Pipeline, target: TargetTable, version: int, origin: Origin | None
    ) -> None:
        self._pipeline, self._key = pipeline, str(target).encode()
        self.fold = ShadowFold(pipeline, target, version, origin)
        self._read_to: dict[int, int] = {}

    def read(self) -> None:
        """Fold what the log has now.

        Raises:
            StackError: Kafka does not answer.
            ContractError: The log lacks its first records.
        """
        format_ = record_format(self._pipeline.kafka)
        with topic_reader(self._pipeline) as reader:
            for extent in reader.extents([topics.schema_log(self._pipeline).name]):
                begin = self._read_to.get(extent.partition, 0)
                if extent.begin > begin:
                    raise ContractError(
                        f"{extent.topic}/{extent.partition} begins at offset {extent.begin}: the "
                        "records before it were deleted, and the new table needs them all",
                        hint="set the topic's retention to -1, and give the target a new pipeline",
                        code="SM-2118",
                    )
                for record in reader.records(replace(extent, begin=begin)):
                    if record.key == self._key and record.value is not None:
                        self.fold.take(logged_change(format_.read(record.value), record.place))
                self._read_to[extent.partition] = extent.end

    def as_read(self, decision: Decision, shadow: Shadow) -> Decision:
        """See ``ShadowFold.as_read``; waits for the log, which has the record before its decision.

        Raises:
            ContractError: The log does not show it, or cannot be read for a long time.
        """
        until, last = time.monotonic() + _PATIENCE_S, "the log lacks its record"
        while (found := self.fold.as_read(decision, shadow)) is None:
            if time.monotonic() > until:
                raise ContractError(
                    f"decision {decision.version} of {decision.target} is not known for its new "
                    f"table: {last}",
                    hint="see whether Kafka answers; the rebuild goes on by itself",
                    code="SM-6526",
                )
            try:
                self.read()
            except StackError as error:
                last = str(error)
            if self.fold.as_read(decision, shadow) is None:
                time.sleep(_PAUSE_S)
        return found


def own_decisions(pipeline: Pipeline, record: RebuildRecord) -> OwnDecisions | None:
    """The decisions of a rebuild's table; None if it has those of the target."""
    if record.origin is None:
        return None
    return OwnDecisions(pipeline, record.target, record.version, record.origin)


def decided_for_shadow(pipeline: Pipeline, record: RebuildRecord) -> Callable[[Decision], Decision]:
    """What a decision of the ddl topic is for the table of a rebuild that has its own."""
    own, shadow = own_decisions(pipeline, record), record.shadow
    assert own is not None
    return lambda decision: own.as_read(decision, shadow)
