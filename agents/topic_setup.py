"""Makes the pipeline's topics before the worker joins, and checks those that exist.

A source topic that is missing when a Faust worker joins leaves its agent idle without an error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from shardmerge.schemas.errors import StackError
from shardmerge.schemas.topics import TopicSpec

log = logging.getLogger(__name__)

ATTEMPTS = 60
PAUSE_S = 0.5
TOPIC_EXISTS = 36
"""Kafka's error code TOPIC_ALREADY_EXISTS."""


async def ensure_topics(bootstrap_servers: str, specs: Sequence[TopicSpec]) -> None:
    """Create the topics that are missing and wait until every broker's metadata shows all.

    Raises:
        StackError: The broker does not answer, refuses a topic, or a topic has another number
            of partitions.
    """
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        try:
            await client.start()
            await _create(client, specs)
            await _check(client, specs)
        except KafkaError as error:
            raise StackError(
                f"Kafka at {bootstrap_servers}: {error}", hint="check [kafka] bootstrap_servers"
            ) from error
    finally:
        await client.close()


async def _create(client: AIOKafkaAdminClient, specs: Sequence[TopicSpec]) -> None:
    known = set(await client.list_topics())
    missing = [spec for spec in specs if spec.name not in known]
    if not missing:
        return
    answer = await client.create_topics(
        [
            NewTopic(s.name, s.partitions, s.replication, topic_configs=dict(s.config))
            for s in missing
        ]
    )
    for topic, code, *message in answer.topic_errors:
        if code not in (0, TOPIC_EXISTS):
            detail = message[0] if message and message[0] else f"error {code}"
            raise StackError(f"Kafka refused topic {topic}: {detail}")
    log.info("topics_created", extra={"topics": sorted(s.name for s in missing)})


async def _check(client: AIOKafkaAdminClient, specs: Sequence[TopicSpec]) -> None:
    missing: set[str] = set()
    for _ in range(ATTEMPTS):
        found = {
            entry["topic"]: len(entry["partitions"])
            for entry in await client.describe_topics([s.name for s in specs])
            if not entry["error_code"]
        }
        missing = {s.name for s in specs} - found.keys()
        if not missing:
            break
        await asyncio.sleep(PAUSE_S)
    if missing:
        raise StackError(f"topics are missing after they were created: {sorted(missing)}")
    for spec in specs:
        if found[spec.name] != spec.partitions:
            raise StackError(
                f"topic {spec.name} has {found[spec.name]} partitions instead of {spec.partitions}",
                hint="its order would be lost; delete the topic, or state its number of partitions",
            )
