"""Ended sessions on a real broker: one worker tells the others, and a new one reads them first."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from shardmerge.agents.web.ended_reader import EndedReader, tell_all
from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.web import TOKEN

from .line import Line

BOUND_S = 30.0


async def until(reader: EndedReader, nonce: str) -> None:
    async with asyncio.timeout(BOUND_S):
        while not (reader.caught_up and reader.has(nonce)):
            await asyncio.sleep(0.05)


def test_a_session_that_ends_on_one_worker_ends_on_all(line: Line) -> None:
    pipeline = replace(line.pipeline, web=replace(line.pipeline.web, commands=TOKEN))
    create_topics(pipeline.kafka, topics.page_topics(pipeline))
    topic = topics.ended_sessions(pipeline).name

    def worker() -> EndedReader:
        return EndedReader(pipeline.kafka, topic, tell_all(pipeline))

    async def play() -> None:
        one, other, later = worker(), worker(), worker()
        async with one, other:
            await one.end("n0nce")
            await until(other, "n0nce")
            assert not other.has("another")
        async with later:
            await until(later, "n0nce")

    asyncio.run(play())
