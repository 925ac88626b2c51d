"""The topics that a client like the agents' sees: ``python -m`` with a pipeline file.

In a process of its own where it fails: aiokafka leaves the connection to the collector when there
is no token for it, and the processors' load decides when the collector finds it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from aiokafka import AIOKafkaConsumer

from shardmerge.cli.parameters import read_pipeline
from shardmerge.connectors.access.aiokafka_arguments import aiokafka_arguments
from shardmerge.schemas.pipeline.settings import Kafka


async def topics(access: Kafka) -> set[str]:
    """Names of all topics that the client may see."""
    client = AIOKafkaConsumer(**aiokafka_arguments(access))
    try:
        await client.start()
        return set(await client.topics())
    finally:
        await client.stop()


if __name__ == "__main__":
    logging.basicConfig()
    print(*sorted(asyncio.run(topics(read_pipeline(Path(sys.argv[1])).kafka))))
