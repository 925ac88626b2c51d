"""The formats of the connectors' records and of our own, by the pipeline file.

What is needed for it is asked from the pipeline's schema registry, if it names one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from shardmerge.connectors.event_log import logger
from shardmerge.connectors.formats.avro_wire import JsonOfAvro, RegistryUnreachable
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.record_format import RecordFormat

from .registry import RegistryAddress, SchemaRegistry

log = logger(__name__)
_PAUSE_S = 2.0
"""Pause before a registry that did not answer is asked again."""


def unchanged(value: bytes | None) -> bytes | None:
    """A record that is in JSON already."""
    return value


def json_of_connectors(kafka: Kafka) -> Callable[[bytes | None], bytes | None]:
    """The function that turns schema changes and notifications into JSON, see ``JsonOfAvro``."""
    address = RegistryAddress.of(kafka)
    return unchanged if address is None else JsonOfAvro(SchemaRegistry(address).schema_text)


def awaited_record_format(kafka: Kafka, stopped: Callable[[], bool] = bool) -> RecordFormat:
    """As ``record_format``, but a registry that does not answer is awaited until ``stopped``.

    Raises:
        RegistryRefuses: The registry does not take a contract.
        RegistryUnreachable: It was stopped while it waited.
    """
    while True:
        try:
            return record_format(kafka)
        except RegistryUnreachable as error:
            if stopped():
                raise
            log.warning("registry_awaited", error=error)
            time.sleep(_PAUSE_S)


def record_format(kafka: Kafka) -> RecordFormat:
    """The format, with the ids of every contract that this version can read.

    They are registered under the full name of the record (``shardmerge.Decision``), the oldest
    first; once, when a process starts: no record waits for the registry later.

    Raises:
        RegistryRefuses: The registry does not take a contract.
        RegistryUnreachable: It does not answer.
    """
    address = RegistryAddress.of_own(kafka)
    if address is None or kafka.record_format != "avro-registry":
        return RecordFormat(kafka.record_format)
    registry = SchemaRegistry(address)
    contracts = codec.contracts()
    ids = {header: registry.registered(name, text) for name, header, text in contracts}
    # With other descriptions a schema has another id, and earlier versions wrote with that one.
    all_ids = {}
    for name in dict.fromkeys(name for name, _, _ in contracts):
        for number, text in registry.schemas_of(name).items():
            if (header := codec.header_of(text)) in ids:
                all_ids[number] = header
    return RecordFormat(kafka.record_format, ids, all_ids)
