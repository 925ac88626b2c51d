"""Fills the generated parts of the documents from the code: ``make reference``.

A page has a part between ``<!-- generated: NAME -->`` and ``<!-- end -->``; what stands around it
is written by hand. The part comes from the code: keys, types, defaults and docstrings of the
pipeline file's records, the command line's own help, the topics, the Avro contracts, the error
classes, the codes, the log events. ``tests/unit/docs`` fails when a committed page is not what
this writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from docs.pipeline_parts import (
    MINIMAL,
    environment,
    kafka_client,
    refused_properties,
    route_keys,
    target_kinds,
    tunable_properties,
)
from docs.program_parts import (
    code_sections,
    command_help,
    error_table,
    event_fields,
    events,
    exit_codes,
    metrics,
)
from docs.record_parts import json_sections, record_sections, topic_sizes, topic_table
from docs.tables import key_table, record_keys
from shardmerge.cli.main import main
from shardmerge.connectors.debezium.value_limits import LIMITS
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.tls import Tls

FOLDER = Path(__file__).resolve().parent


PART = re.compile(r"(<!-- generated: ([\w-]+) -->\n)(?:.*?\n)??(<!-- end -->)", re.DOTALL)


def generated() -> dict[str, str]:
    """Every generated part by its name."""
    pipeline = parse_pipeline(MINIMAL, {})
    return {
        "tls": key_table(record_keys(Tls)),
        "kafka-client": kafka_client(),
        "kafka": key_table(record_keys(type(pipeline.kafka))),
        "connect": key_table(record_keys(type(pipeline.connect))),
        "sources": key_table(record_keys(type(pipeline.sources[0]))),
        "routes": key_table(route_keys()),
        "target": key_table(record_keys(type(pipeline.target), ("catalog",))),
        "target-kinds": target_kinds(),
        "refused-properties": refused_properties(),
        "tunable-properties": tunable_properties(),
        "sink": key_table(record_keys(type(pipeline.sink))),
        "web": key_table(record_keys(type(pipeline.web))),
        "lineage": key_table(record_keys(type(pipeline.lineage))),
        "environment": environment(),
        "cli": "\n\n".join(command_help(main, "shardmerge")),
        "exit-codes": exit_codes(),
        "json": json_sections(),
        "topics": topic_table(),
        "topic-sizes": topic_sizes(),
        "records": record_sections(),
        "errors": error_table(),
        "codes": code_sections(),
        "events": events(),
        "event-fields": event_fields(),
        "metrics": metrics(),
        "value-limits": "\n".join(f"* {limit.sentence}." for limit in LIMITS),
    }


def filled(page: str, parts: Mapping[str, str]) -> str:
    """A page with its generated parts as they must be now.

    Raises:
        KeyError: The page names a part that does not exist.
    """
    return PART.sub(lambda found: f"{found[1]}\n{parts[found[2]]}\n\n{found[3]}", page)


if __name__ == "__main__":
    made = generated()
    for path in sorted(FOLDER.rglob("*.md")):
        path.write_text(filled(path.read_text(encoding="utf-8"), made), encoding="utf-8")
