"""Schema-change records in Avro → the JSON that the tracker's fold reads.

The fold stays pure, and bundles hold what it read. While the registry does not answer, the record
waits, and with it every later one of the tracker; nothing is skipped, and no other agent waits.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from shardmerge.connectors.avro_wire import JsonOfAvro, RegistryUnreachable
from shardmerge.connectors.registry import RegistryAddress, SchemaRegistry
from shardmerge.schemas import topics
from shardmerge.schemas.pipeline import Pipeline

from .delivery import Translate, as_it_is
from .effects import SourceRecord

log = logging.getLogger(__name__)

PAUSE_S = 2.0
"""Before a registry that did not answer is asked again."""


def translation(pipeline: Pipeline) -> Translate:
    """What makes JSON of the tracker's records, by the pipeline's format."""
    address = RegistryAddress.of(pipeline.kafka)
    if address is None:
        return as_it_is
    translate = JsonOfAvro(SchemaRegistry(address).schema_text)
    ours = topics.commands(pipeline).name

    async def to_json(record: SourceRecord) -> SourceRecord:
        if record.topic == ours:
            return record
        while True:
            try:
                # Beside the event loop: the other agents and Faust's heartbeats go on.
                value = await asyncio.to_thread(translate, record.value)
            except RegistryUnreachable as error:
                log.warning(
                    "registry_awaited",
                    extra={"error": str(error), "topic": record.topic, "offset": record.offset},
                )
                await asyncio.sleep(PAUSE_S)
            else:
                return replace(record, value=value)

    return to_json
