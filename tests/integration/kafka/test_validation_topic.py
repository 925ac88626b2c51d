"""What a comparison found comes into its topic, also in a pipeline that lacked it."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.connectors.kafka.topics_admin import describe_topics
from shardmerge.connectors.kafka.validation_topic import forget_validations, send_validation
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.records.record_format import AVRO
from shardmerge.schemas.records.validations import TargetValidation
from tests.recorded import pipeline


def test_a_comparison_makes_its_topic_and_comes_into_it(stack: LocalStack) -> None:
    of = replace(pipeline(), name="compared", kafka=stack.kafka)
    spec = topics.validations(of)
    assert spec.name not in describe_topics(stack.kafka)
    whole = TargetValidation(TargetTable("merged", "t"), 3, 1_000, 2_000, True, 30, 2, missing=1)
    part = replace(whole, complete=False, stopped="no patience")
    for found in (whole, part):
        send_validation(of, AVRO, found)

    made = describe_topics(stack.kafka)[spec.name]
    assert (made.partitions, made.settings["cleanup.policy"]) == (1, "compact")
    with TopicReader(stack.kafka, 10.0, "compared-reader") as reader:
        [extent] = reader.extents([spec.name])
        records = [(r.key, AVRO.read(r.value or b"")) for r in reader.records(extent)]
    assert records == [(b"merged.t", whole), (b"merged.t/part", part)]

    forget_validations(of, TargetTable("merged", "t"))
    with TopicReader(stack.kafka, 10.0, "compared-reader") as reader:
        [extent] = reader.extents([spec.name])
        written = [(r.key, r.value) for r in reader.records(extent)]
    assert written[2:] == [(b"merged.t", None), (b"merged.t/part", None)]


def test_nothing_is_forgotten_in_a_pipeline_that_lacks_the_topic(stack: LocalStack) -> None:
    of = replace(pipeline(), name="forgotten", kafka=stack.kafka)
    forget_validations(of, TargetTable("merged", "t"))
    assert topics.validations(of).name not in describe_topics(stack.kafka)
