"""The generated parts about topics, their records, and the command's JSON."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from docs.pipeline_parts import MINIMAL
from docs.tables import attributes, first_paragraph, markdown, table
from shardmerge.agents.holds import shapes as hold_shapes
from shardmerge.agents.preview import shapes as plan_shapes
from shardmerge.cli.cutover import cutover_shapes
from shardmerge.cli.drift import drift_shapes
from shardmerge.cli.loads import load_shapes
from shardmerge.cli.moving import move_shapes
from shardmerge.cli.rebuild import rebuild_shapes
from shardmerge.cli.validation import report_shapes
from shardmerge.cli.views import call_shapes, decision_shapes, shapes
from shardmerge.connectors.debezium import connector_resources
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.schemas.codes import registry
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.file import parse_pipeline

CONTRACTS = Path(__file__).resolve().parents[1] / "schemas" / "records" / "avro"


def topic_table() -> str:
    """Every topic of the pipeline's own, with its settings."""
    pipeline = parse_pipeline(MINIMAL, {})
    makers = (
        topics.commands, topics.schema_log, topics.ddl, topics.joined_schemas,
        topics.sink_progress, topics.validations, topics.signals, topics.notifications,
    )  # fmt: skip
    specs = [(maker(pipeline), first_paragraph(maker)) for maker in makers]
    for of_source in (topics.schema_changes, topics.connector_offsets):
        specs.append((of_source(pipeline, "SOURCE"), first_paragraph(of_source)))
    rows = [
        (f"`{spec.name}`", str(spec.partitions), spec.config["cleanup.policy"], meaning)
        for spec, meaning in specs
    ]
    return table("topic | partitions | clean-up | holds", rows)


def topic_sizes() -> str:
    """The largest records."""
    own, rows = topics.MAX_RECORD_BYTES // 2**20, topics.MAX_ROW_BYTES // 2**20
    return f"A record of the pipeline's own topics has at most {own} MiB, a row record {rows} MiB."


def type_text(kind: Any) -> str:
    """An Avro type as a few words."""
    match kind:
        case str():
            return kind
        case list():
            return " or ".join(type_text(each) for each in kind)
        case {"type": "array", "items": items}:
            return f"list of {type_text(items)}"
        case {"type": "map", "values": values}:
            return f"map of {type_text(values)}"
        case {"type": "enum", "symbols": symbols}:
            return " or ".join(f"`{each}`" for each in symbols)
        case {"type": "record", "name": name}:
            return str(name)
        case _:
            return type_text(kind["type"])


def records_in(kind: Any) -> Iterator[Mapping[str, Any]]:
    """The records of an Avro schema, each where it is defined."""
    if isinstance(kind, list):
        for each in kind:
            yield from records_in(each)
    elif isinstance(kind, dict):
        if kind["type"] == "record":
            yield kind
        inner = (each["type"] for each in kind.get("fields", ()))
        for each in (kind.get("items"), kind.get("values"), *inner):
            yield from records_in(each)


def record_sections() -> str:
    """The contracts of the pipeline's own records."""
    known: dict[str, Mapping[str, Any]] = {}
    for path in sorted(CONTRACTS.glob("*.avsc")):
        for record in records_in(json.loads(path.read_text(encoding="utf-8"))):
            known.setdefault(record["name"], record)

    def linked(kind: str) -> str:
        words = (f"[{w}](#{w.lower()})" if w in known else w for w in kind.split(" "))
        return " ".join(words)

    sections = []
    for name, record in known.items():
        rows = [
            (f"`{f['name']}`", linked(type_text(f["type"])), markdown(f.get("doc", "")))
            for f in record["fields"]
        ]
        told = f"{markdown(record['doc'])}\n\n" if record.get("doc") else ""
        sections.append(f"## {name}\n\n{told}{table('field | type | meaning', rows)}")
    return "\n\n".join(sections)


def json_sections() -> str:
    """The shapes of the command line's JSON."""
    found: list[type] = [ConnectorState]
    for module in (
        shapes, hold_shapes, decision_shapes, plan_shapes, load_shapes, drift_shapes,
        report_shapes, cutover_shapes, rebuild_shapes, move_shapes, call_shapes,
        connector_resources, registry,
    ):  # fmt: skip
        classes = (each for _, each in inspect.getmembers(module, inspect.isclass))
        own = [c for c in classes if is_dataclass(c) and c.__module__ == module.__name__]
        own = [c for c in own if c is not registry.Family]
        found += sorted(own, key=lambda each: inspect.getsourcelines(each)[1])
    known = {each.__name__ for each in found}
    sections = []
    for each in found:
        meanings = attributes(each)
        rows = []
        for field in fields(each):
            kind = str(field.type).replace(" | None", " or null")
            if listed := re.fullmatch(r"tuple\[(\w+), \.\.\.\]", kind):
                kind = f"list of {listed[1]}"
            elif mapped := re.fullmatch(r"Mapping\[str, (\w+)\]", kind):
                kind = f"map of {mapped[1]}"
            words = (f"[{w}](#{w.lower()})" if w in known else w for w in kind.split(" "))
            rows.append((f"`{field.name}`", " ".join(words), meanings[field.name]))
        told = table("field | type | meaning", rows)
        sections.append(f"## {each.__name__}\n\n{first_paragraph(each)}\n\n{told}")
    return "\n\n".join(sections)
