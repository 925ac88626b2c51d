"""How often the connectors of a line look for events, where nobody measures latency."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.pipeline.settings import Pipeline


def polled_rarely(pipeline: Pipeline) -> Pipeline:
    """The pipeline with connectors that cost less while they wait.

    Debezium's queue waits by spinning for the last part of each millisecond (``ChangeEventQueue``):
    every look costs half a millisecond of a processor, and 100 looks a second cost 5 % of one.
    """
    connector = (*pipeline.connect.connector, ("poll.interval.ms", "50"))
    return replace(pipeline, connect=replace(pipeline.connect, connector=connector))
