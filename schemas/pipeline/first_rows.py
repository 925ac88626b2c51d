"""Who reads a source's first rows: the sink, by Spark, or Debezium's snapshot. Pure.

Where the pipeline file does not say it, the sink does. It is then decided once, when the file is
read; everything else asks ``Source.is_loaded``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shardmerge.schemas.model.errors import ConfigError

from .routing import RoutingRule
from .settings import SNAPSHOTS, Pipeline, Source

DEBEZIUM, SPARK = SNAPSHOTS


def with_first_rows(
    entry: Mapping[str, Any], rules: Sequence[RoutingRule], target_kind: str
) -> Mapping[str, Any]:
    """An entry of ``[[sources]]`` that says who reads the source's first rows.

    The entry itself decides, if it has ``snapshot``. One that has ``snapshot_mode`` means
    Debezium's snapshot. Otherwise the sink reads them, unless it cannot (``not_loaded``).

    Args:
        entry: As the file has it.
        rules: The routing rules.
        target_kind: ``kind`` of ``[target]``.
    """
    if "snapshot" in entry:
        return entry
    is_debeziums = "snapshot_mode" in entry or not_loaded(
        str(entry.get("name", "")), rules, target_kind
    )
    return {**entry, "snapshot": DEBEZIUM if is_debeziums else SPARK}


def not_loaded(source: str, rules: Sequence[RoutingRule], target_kind: str) -> str:
    """Why the sink cannot load a source's first rows; "" if it can.

    Args:
        source: The source's name.
        rules: The routing rules.
        target_kind: ``kind`` of ``[target]``.
    """
    if target_kind != "iceberg":
        return ""
    for rule in rules:
        if rule.ignores_operations and re.fullmatch(rule.source, source):
            return (
                f"the route to {rule.target_database}.{rule.target_table}, an Iceberg target, "
                "ignores operations, or keeps the rows of a TRUNCATE"
            )
    return ""


def first_rows_by(who: str, pipeline: Pipeline) -> Pipeline:
    """The pipeline with ``who``, one of ``SNAPSHOTS``, as the reader of all sources' first rows."""
    sources = (replace(source, snapshot=who) for source in pipeline.sources)
    return replace(pipeline, sources=tuple(sources))


def check_first_rows(source: Source, pipeline: Pipeline) -> None:
    """Raise ``ConfigError`` when a source's first rows cannot be read as it says."""
    if source.snapshot not in SNAPSHOTS:
        raise ConfigError(
            f"source {source.name}: snapshot {source.snapshot!r} is not known",
            hint=f"known: {', '.join(SNAPSHOTS)}",
            code="SM-5005",
        )
    if source.load_connections < 1 or min(source.load_rows_per_s, source.load_snapshot_s) < 0:
        raise ConfigError(
            f"source {source.name}: load_connections must be at least 1, load_rows_per_s and "
            "load_snapshot_s at least 0",
            code="SM-5004",
        )
    if not source.is_loaded:
        return
    if source.snapshot_mode != "initial":
        raise ConfigError(
            f"source {source.name}: snapshot_mode {source.snapshot_mode!r} does not go with "
            "snapshot 'spark', whose connector only describes the tables",
            hint="leave snapshot_mode out",
            code="SM-5204",
        )
    if why := not_loaded(source.name, pipeline.routes, pipeline.target.kind):
        raise ConfigError(
            f"source {source.name}: snapshot 'spark' is not possible: {why}",
            hint="leave snapshot out: Debezium's snapshot brings the rows",
            code="SM-5204",
        )
