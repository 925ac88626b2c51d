"""Writes what comparisons of targets found to their topic, from where the pages take it.

A tombstone says that nothing is known of a target any more.
"""

from __future__ import annotations

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.record_format import RecordFormat
from shardmerge.schemas.records.validations import TargetValidation, record_keys

from .delivered_record import deliver
from .topics_admin import create_topics, has_topic

_SEND_S = 10.0


def send_validation(pipeline: Pipeline, format_: RecordFormat, found: TargetValidation) -> None:
    """Write a comparison. A pipeline of an earlier version gets the topic, if it lacks it.

    Args:
        pipeline: Whose topic.
        format_: Of the pipeline's records.
        found: The comparison.

    Raises:
        StackError: Kafka does not take it, or refuses the topic.
    """
    spec = topics.validations(pipeline)
    if not has_topic(pipeline.kafka, spec.name, _SEND_S):
        create_topics(pipeline.kafka, (spec,), _SEND_S)
    _deliver(pipeline, format_.write(found), found.record_key, found.target, "the comparison")


def forget_validations(pipeline: Pipeline, target: TargetTable) -> None:
    """Write tombstones of the comparisons of a target whose table is another one now.

    Args:
        pipeline: Whose topic.
        target: The target.

    Raises:
        StackError: Kafka does not take them.
    """
    if has_topic(pipeline.kafka, topics.validations(pipeline).name, _SEND_S):
        for key in record_keys(target):
            _deliver(pipeline, None, key, target, "the end of the comparisons")


def _deliver(
    pipeline: Pipeline, value: bytes | None, key: str, target: TargetTable, what: str
) -> None:
    topic, header = topics.validations(pipeline).name, ("target", str(target))
    deliver(pipeline.kafka, topic, value, key, header=header, what=what, within_s=_SEND_S)
