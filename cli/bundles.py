"""Kafka → bundles: what ``export`` and ``replay`` have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import BinaryIO

from shardmerge.agents.replay.bundle import Manifest, write_bundle
from shardmerge.connectors.formats.stored_record import Extent, StoredRecord
from shardmerge.connectors.kafka.record_formats import json_of_connectors, record_format
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline, Target
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.pipeline.tls import Tls
from shardmerge.schemas.pipeline.web import Web
from shardmerge.schemas.records.record_format import RecordFormat

from .clients import topic_reader


def exported_topics(pipeline: Pipeline) -> tuple[str, ...]:
    """The topics of an export, each before the topics from which its records are made."""
    chain = replayed_topics(pipeline, verify=True, from_sources=True)
    others = (spec.name for spec in topics.own_topics(pipeline) if spec.name not in chain)
    return (*others, *chain)


def replayed_topics(pipeline: Pipeline, *, verify: bool, from_sources: bool) -> tuple[str, ...]:
    """The topics that a replay needs, each before the topics from which its records are made."""
    outputs = (
        topics.signals(pipeline).name,
        topics.joined_schemas(pipeline).name,
        topics.ddl(pipeline).name,
    )
    return (*(outputs if verify else ()), *folded_topics(pipeline, from_sources=from_sources))


def folded_topics(pipeline: Pipeline, *, from_sources: bool) -> tuple[str, ...]:
    """The topics that the agents fold: the coordinator the schema-log, the tracker the rest."""
    sources = tuple(topics.schema_changes(pipeline, s.name).name for s in pipeline.sources)
    tracked = (topics.commands(pipeline).name, *sources)
    return (topics.schema_log(pipeline).name, *(tracked if from_sources else ()))


def write_from_kafka(
    pipeline: Pipeline, names: Sequence[str], file: BinaryIO, *, required: Sequence[str]
) -> Manifest:
    """Write topics of a running pipeline into a bundle.

    Args:
        pipeline: Its passwords are left out.
        names: The topics. Their ends are asked for in this order, so a topic must come before those
            from which its records are made. Then the bundle has the causes of each of its records.
        file: Open for writing.
        required: Those of them that must exist.

    Raises:
        StackError: Kafka does not answer, or a required topic does not exist.
    """
    with topic_reader(pipeline) as reader:
        extents = [extent for name in names for extent in reader.extents([name])]
        found = {extent.topic for extent in extents}
        sources = {topics.schema_changes(pipeline, s.name).name for s in pipeline.sources}
        to_json = _to_json(pipeline)
        ours = topics.own_records(pipeline)
        canonical = _to_canonical(record_format(pipeline.kafka))
        for name in required:
            if name not in found:
                raise StackError(
                    f"topic {name} does not exist at {pipeline.kafka.bootstrap_servers}",
                    hint="`shardmerge check --pipeline FILE` compares the topics with the file",
                    code="SM-4102",
                )

        def partitions() -> Iterator[tuple[Extent, Iterator[StoredRecord]]]:
            for extent in extents:
                records = reader.records(extent)
                if extent.topic in sources:
                    records = map(to_json, records)
                elif extent.topic in ours:
                    records = map(canonical, records)
                yield extent, records

        return write_bundle(
            file,
            pipeline_text(without_passwords(pipeline)),
            partitions(),
            pipeline=pipeline.name,
            written_by=version("shardmerge"),
            exported_at=datetime.now(UTC).isoformat(timespec="seconds"),
            missing=tuple(name for name in names if name not in found),
        )


def _to_json(pipeline: Pipeline) -> Callable[[StoredRecord], StoredRecord]:
    """Schema changes in Avro become JSON: a bundle is read where there is no registry."""
    translate = json_of_connectors(pipeline.kafka)
    return lambda record: replace(record, value=translate(record.value))


def _to_canonical(format_: RecordFormat) -> Callable[[StoredRecord], StoredRecord]:
    """Our own records become ``codec``'s bytes, as a repeated fold gives them."""

    def canonical(record: StoredRecord) -> StoredRecord:
        value = record.value
        return replace(record, value=None if value is None else format_.to_canonical(value))

    return canonical


def _catalog_without_passwords(target: Target) -> SparkCatalog | None:
    """The catalog without what could be a password: replaying needs its name and kind at most."""
    catalog = target.catalog
    if catalog is None:
        return None
    kept = {"type", "catalog-impl", "warehouse"}
    return replace(catalog, properties=tuple(p for p in catalog.properties if p[0] in kept))


def without_passwords(pipeline: Pipeline) -> Pipeline:
    """The pipeline with empty passwords; replaying needs none."""
    return replace(
        pipeline,
        # A bundle's schema changes are JSON, and our records Avro: no registry is asked.
        kafka=replace(
            pipeline.kafka,
            row_format="json",
            record_format="avro",
            schema_registry="",
            avro_converter="",
            schema_registry_user="",
            schema_registry_password="",
            schema_registry_tls=Tls(),
            client=(),
        ),
        connect=replace(pipeline.connect, user="", password="", tls=Tls(), client=(), connector=()),
        sources=tuple(
            replace(
                source, password="", connect_password="", load_password="", tls=Tls(), connector=()
            )
            for source in pipeline.sources
        ),
        target=replace(
            pipeline.target,
            password="",
            tls=Tls(),
            catalog=_catalog_without_passwords(pipeline.target),
        ),
        web=Web(),
    )
