"""Turns Kafka's bytes into what folds read: schema changes as JSON, our records as ``codec`` does.

So the folds stay pure, and bundles hold what the folds read. While the registry does not answer,
the record waits, and with it every later one of the tracker. Nothing is skipped, and no other agent
waits.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from shardmerge.agents.handling.effects import Send, SourceRecord
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.formats.avro_wire import RegistryUnreachable
from shardmerge.connectors.kafka.record_formats import json_of_connectors, unchanged
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.record_format import RecordFormat

from .delivery import Translate, Wire

log = logger(__name__)

PAUSE_S = 2.0
"""Pause before a registry that did not answer is asked again."""


def wire(pipeline: Pipeline, format_: RecordFormat) -> Wire:
    """The function that encodes a sent record for Kafka."""
    ours = topics.own_records(pipeline)

    def to_kafka(send: Send) -> bytes:
        return format_.of_canonical(send.value) if send.topic in ours else send.value

    return to_kafka


def canonical(format_: RecordFormat) -> Translate:
    """The function that turns our own records into the form that folds read."""

    async def to_canonical(record: SourceRecord) -> SourceRecord:
        return replace(record, value=format_.to_canonical(record.value or b""))

    return to_canonical


def translation(pipeline: Pipeline, format_: RecordFormat) -> Translate:
    """The function that turns the tracker's records into what its fold reads, by their formats."""
    translate = json_of_connectors(pipeline.kafka)
    command = canonical(format_)
    ours = topics.commands(pipeline).name

    async def to_json(record: SourceRecord) -> SourceRecord:
        if record.topic == ours:
            return await command(record)
        if translate is unchanged:
            return record
        while True:
            try:
                # Beside the event loop: the other agents and Faust's heartbeats go on.
                value = await asyncio.to_thread(translate, record.value)
            except RegistryUnreachable as error:
                log.warning(
                    "registry_awaited", topic=record.topic, offset=record.offset, error=error
                )
                await asyncio.sleep(PAUSE_S)
            else:
                return replace(record, value=value)

    return to_json
