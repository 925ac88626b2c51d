"""Writes what comparisons of targets found to their topic, from where the pages take it."""

from __future__ import annotations

from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.record_format import RecordFormat
from shardmerge.schemas.records.validations import TargetValidation

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
    deliver(
        pipeline.kafka,
        spec.name,
        format_.write(found),
        found.record_key,
        header=("target", str(found.target)),
        what="the comparison",
        within_s=_SEND_S,
    )
