"""Which transactions the last records of a connector belong to.

Debezium counts a transaction among an offset's GTIDs only when it has read an event behind it, or a
heartbeat, which comes every 30 seconds. Until then its rows are delivered, and only they name it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from shardmerge.cli.clients import topic_reader
from shardmerge.connectors.debezium.envelope import unwrapped
from shardmerge.connectors.formats.stored_record import Extent
from shardmerge.connectors.kafka.record_formats import json_of_connectors
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.connectors.kafka.topics_admin import describe_topics
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.pipeline.settings import Pipeline, Source
from shardmerge.schemas.pipeline.topics import RowTopics

_TAILS = (20, 500, 20_000)
"""Records at the end of a partition among which one of the source is looked for: at first few. Only
a topic that other sources share, too, can have none of it at its end."""


def delivered_gtids(pipeline: Pipeline, source: Source) -> frozenset[str]:
    """The GTIDs of the last record of each partition that a source's connector writes.

    Raises:
        StackError: Kafka does not answer.
        ContractError: A record is not one of a connector.
    """
    shared = RowTopics(pipeline.routes).shared
    names = [
        name
        for name in describe_topics(pipeline.kafka)
        if name == source.name or name.startswith(f"{source.name}.") or name in shared
    ]
    to_json = json_of_connectors(pipeline.kafka)
    with topic_reader(pipeline) as reader:
        found = {_last(reader, extent, to_json, source.name) for extent in reader.extents(names)}
    return frozenset(found - {""})


def _last(
    reader: TopicReader, extent: Extent, to_json: Callable[[bytes | None], bytes | None], name: str
) -> str:
    for tail in _TAILS:
        begin = max(extent.begin, extent.end - tail)
        gtid = ""
        for record in reader.records(replace(extent, begin=begin)):
            gtid = gtid_of(to_json(record.value), name) or gtid
        if gtid or begin == extent.begin:
            return gtid
    return ""


def gtid_of(value: bytes | None, source: str) -> str:
    """The GTID that a record of a connector names; "" if it names none, or is of another source.

    Args:
        value: As JSON; None for a tombstone.
        source: Name of the source.

    Raises:
        ContractError: It is no such record.
    """
    if value is None:
        return ""
    try:
        told = unwrapped(json.loads(value)).get("source")
    except (TypeError, ValueError) as error:
        raise ContractError(
            f"a record of source {source} cannot be read: {error}",
            hint="see row_format under [kafka] of the pipeline file",
            code="SM-2107",
        ) from error
    if not isinstance(told, dict) or told.get("name") != source:
        return ""
    return str(told.get("gtid") or "")
