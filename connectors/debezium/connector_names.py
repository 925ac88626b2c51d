"""Names of a source's connectors in Kafka Connect. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shardmerge.schemas.pipeline.settings import Pipeline, Source


def connector_name(pipeline: Pipeline, source: Source) -> str:
    """The connector's name in Kafka Connect: no other pair of pipeline and source has it."""
    return f"{pipeline.name}.{source.name}"


def reading_name(pipeline: Pipeline, source: Source, token: str) -> str:
    """The name of a whole reading's connector. ``token``: 12 hexadecimal digits, new each time."""
    return f"{connector_name(pipeline, source)}.whole.{token}"


def readings_among(names: Iterable[str], connector: str) -> tuple[str, ...]:
    """The connectors among ``names`` that read whole tables for a source.

    Args:
        names: Of connectors.
        connector: The source's own connector. No source's name has a point.
    """
    form = re.compile(rf"{re.escape(connector)}\.whole\.[0-9a-f]{{12}}")
    return tuple(sorted(name for name in names if form.fullmatch(name)))
