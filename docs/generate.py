"""Fills the generated parts of the documents from the code: ``make reference``.

A page has a part between ``<!-- generated: NAME -->`` and ``<!-- end -->``; what stands around it
is written by hand. The part comes from the code: keys, types, defaults and docstrings of the
pipeline file's records, the command line's own help, the topics, the Avro contracts, the error
classes, the codes, the log events. ``tests/unit/docs`` fails when a committed page is not what
this writes.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from docs.log_events import Event, logged_events, meanings
from shardmerge.agents.holds import shapes as hold_shapes
from shardmerge.agents.preview import shapes as plan_shapes
from shardmerge.agents.runtime import settings as agents
from shardmerge.cli.cutover import cutover_shapes
from shardmerge.cli.drift import drift_shapes
from shardmerge.cli.endings import ExitCode
from shardmerge.cli.loads import load_shapes
from shardmerge.cli.main import main
from shardmerge.cli.moving import move_shapes
from shardmerge.cli.rebuild import rebuild_shapes
from shardmerge.cli.validation import report_shapes
from shardmerge.cli.views import call_shapes, decision_shapes, shapes
from shardmerge.connectors.debezium import connector_resources
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.debezium.value_limits import LIMITS
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.connectors.log_lines import LOG_FORMAT
from shardmerge.connectors.metrics.catalog import PROCESSES
from shardmerge.schemas.codes import registry
from shardmerge.schemas.codes.registry import families
from shardmerge.schemas.model import errors
from shardmerge.schemas.model.policies import RowOperation
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.connector_properties import REFUSED, TUNABLE
from shardmerge.schemas.pipeline.file import TARGETS, parse_pipeline
from shardmerge.schemas.pipeline.kafka_client import KNOWN
from shardmerge.schemas.pipeline.kafka_client import REFUSED as REFUSED_FOR_KAFKA
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.pipeline.tls import Tls
from shardmerge.spark_sink.process import settings as sink
from shardmerge.spark_sink.process.failpoints import SETTING as SINK_FAILPOINT

FOLDER = Path(__file__).resolve().parent
CONTRACTS = FOLDER.parent / "schemas" / "records" / "avro"
PART = re.compile(r"(<!-- generated: ([\w-]+) -->\n)(?:.*?\n)??(<!-- end -->)", re.DOTALL)
_MINIMAL = """\
[pipeline]
name = "PIPELINE"
[kafka]
bootstrap_servers = "kafka:9092"
[connect]
url = "http://connect:8083"
[[sources]]
name = "SOURCE"
host = "h"
port = 3306
user = "u"
password = "p"
server_id = 1
[[routes]]
database = "app"
table = "t"
target = "merged.t"
[target]
host = "h"
port = 3306
user = "u"
password = "p"
"""
_ROUTE_REQUIRED = ("database", "table", "target")
_ROUTE_WORDS = {
    "target": "The merged table, as `database.table`. Named groups of the three expressions may "
    "stand in it as `\\g<name>`.",
    "origin": "Which origin columns the target gets. Keys: `shard`, `source`, `database`, `table` "
    "and `position`, each with the name of a column; `groups`, with a column for each named group "
    "of the expressions; and `in_keys` (true: the primary key and the "
    "unique keys end with the columns that name the shard).",
} | {
    name: f"Regular expression of the {name}'s name. It must match the whole name."
    for name in ("source", "database", "table")
}
_SINK_VARIABLES = {
    "master": sink.MASTER,
    "driver_memory": sink.DRIVER_MEMORY,
    "ui_port": sink.UI_PORT,
    "log_level": sink.LOG_LEVEL,
    "log_format": LOG_FORMAT,
    "jars": sink.JARS,
    "ivy": sink.IVY,
    "metrics_host": sink.METRICS_HOST,
    "metrics_port": sink.METRICS_PORT,
    "metrics_per_shard": sink.METRICS_PER_SHARD,
    "standby": sink.STANDBY,
}
_FAILPOINT_MEANING = (
    "Where the sink's driver or one of its tasks kills itself, for tests: `<place>:<passing>`."
)
_PROCESSES = {
    "agents": "agents", "cli": "cli", "connectors": "watchdog", "local": "keeper",
    "spark_sink": "sink",
}  # fmt: skip
"""Package → the process in which its code runs."""
_ENTRY = re.compile(r"\n {4}(?=\w[\w, ]*:)")


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the pipeline file."""

    name: str
    type: str
    default: str
    meaning: str


def attributes(record: type) -> dict[str, str]:
    """The meaning of each field, from the ``Attributes`` section of a class's docstring."""
    text = inspect.cleandoc(record.__doc__ or "")
    section = text.partition("Attributes:\n")[2].partition("\n\n")[0]
    found = {}
    for entry in _ENTRY.split(f"\n{section}")[1:]:
        names, _, meaning = entry.partition(":")
        for name in names.split(","):
            found[name.strip()] = re.sub(r" See `[\w.]+`\.", "", markdown(meaning))
    return found


def markdown(text: str) -> str:
    """A docstring's text as one line of Markdown, for a cell of a table."""
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|").replace('""', '`""`')


def first_paragraph(documented: object) -> str:
    """The first paragraph of a docstring."""
    return markdown((inspect.getdoc(documented) or "").partition("\n\n")[0])


def value_text(value: Any) -> str:
    """A default as the pipeline file writes it."""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if value == ():
        return "none"
    return f"`{value}`" if isinstance(value, int) else f'`"{value}"`'.replace("|", "\\|")


def table(head: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Rows as a table of Markdown; ``head`` names the columns, with bars between them."""
    lines = [f"| {head} |", "|" + "---|" * (head.count("|") + 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def key_table(keys: list[Key]) -> str:
    """Keys as a table."""
    rows = [(f"`{key.name}`", key.type, key.default, key.meaning) for key in keys]
    return table("key | type | default | meaning", rows)


def record_keys(record: Any, left_out: tuple[str, ...] = ()) -> list[Key]:
    """The keys of a table that is read into one dataclass."""
    meanings = attributes(record)
    keys = []
    for each in fields(record):
        if each.name not in left_out:
            is_table = each.type in ("Tls", "Properties")
            default = "required"
            if is_table:
                default = "none"
            elif each.default is not MISSING:
                default = value_text(each.default)
            kind = "table" if is_table else f"{each.type}".replace("tuple[str, ...]", "list of str")
            keys.append(Key(each.name, kind, default, meanings[each.name]))
    return keys


def parts_of(record: Any) -> Iterator[Any]:
    """A record, and the records in its fields."""
    yield record
    for each in fields(record):
        value = getattr(record, each.name)
        if is_dataclass(value):
            yield from parts_of(value)


def route_keys() -> list[Key]:
    """The keys of a route: names and defaults as a written-out file shows them."""
    pipeline = parse_pipeline(_MINIMAL, {})
    written = pipeline_text(pipeline).partition("[[routes]]\n")[2].partition("\n\n")[0]
    values: dict[str, Any] = {}
    meanings: dict[str, str] = {}
    for part in parts_of(pipeline.routes[0]):
        values |= {each.name: getattr(part, each.name) for each in fields(part)}
        meanings |= attributes(type(part))
    keys = []
    for line in written.splitlines():
        name, _, text = line.partition(" = ")
        value, kind, default = values.get(name), "str", f"`{text}`".replace("|", "\\|")
        meaning = _ROUTE_WORDS.get(name) or meanings[name]
        if isinstance(value, StrEnum):
            kind = " or ".join(f'`"{each.value}"`' for each in type(value))
            # A policy that two keys share says nothing of either.
            if sum(type(other) is type(value) for other in values.values()) == 1:
                meaning = markdown(inspect.getdoc(type(value)) or "")
        default = "required" if name in _ROUTE_REQUIRED else default
        if name == "mode":
            default = "that of `[pipeline]`"
        if name == "ignore":
            kind = "list of " + ", ".join(f'`"{each}"`' for each in RowOperation)
        if name == "origin":
            kind, default = "table", "none"
        keys.append(Key(name, kind, default, meaning))
    return keys


def refused_properties() -> str:
    """The properties of connectors that are not passed through."""
    rows = []
    for refused in REFUSED:
        names = ", ".join(f"`{name}`" for name in refused.names)
        if refused.values:
            names += f" (the value {', '.join(refused.values)})"
        rows.append((names, markdown(refused.reason), refused.instead or "nothing"))
    return table("properties | reason: the property … | use instead", rows)


def tunable_properties() -> str:
    """The properties that connectors get anyway, and that may be set otherwise."""
    config = connector_config(parse_pipeline(_MINIMAL, {}), parse_pipeline(_MINIMAL, {}).sources[0])
    return table("property | set to", [(f"`{name}`", f"`{config[name]}`") for name in TUNABLE])


def target_kinds() -> str:
    """The kinds of target, with their versions."""
    rows = [
        (f"`{kind}`", ".".join(map(str, oldest)), f"{newest}.x")
        for kind, (oldest, newest) in TARGETS.items()
    ]
    return table("kind | oldest version | newest version", rows)


def kafka_client() -> str:
    """The properties of ``[kafka.client]``, and why others are refused."""
    known = ", ".join(f"`{name}`" for name in sorted(KNOWN))
    rows = [(f"`{name}`", reason) for name, reason in REFUSED_FOR_KAFKA.items()]
    return f"Taken: {known}.\n\n{table('not taken | why', rows)}"


def environment() -> str:
    """The environment variables of the processes."""
    rows = [
        (f"`{agents.PREFIX}{key.name.upper()}`", key.default, key.meaning)
        for key in record_keys(agents.AgentSettings)
    ]
    rows += [
        (f"`{_SINK_VARIABLES[key.name]}`", key.default, key.meaning)
        for key in record_keys(sink.SinkSettings, ("pipeline_file", "rebuild"))
    ]
    rows.append((f"`{SINK_FAILPOINT}`", '`""`', _FAILPOINT_MEANING))
    return table("variable | default | meaning", rows)


def command_help(
    command: click.Command, path: str, parent: click.Context | None = None
) -> Iterator[str]:
    """The help of a command and of those below it."""
    name = path.rpartition(" ")[2]
    context = click.Context(command, info_name=name, parent=parent, terminal_width=90)
    yield f"## `{path}`\n\n```text\n{context.get_help()}\n```"
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            assert below is not None
            yield from command_help(below, f"{path} {each}", context)


def topic_table() -> str:
    """Every topic of the pipeline's own, with its settings."""
    pipeline = parse_pipeline(_MINIMAL, {})
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


def exit_codes() -> str:
    """The exit codes and what they mean."""
    text = inspect.getsource(ExitCode)
    rows = []
    for code in ExitCode:
        _, _, after = text.partition(f'{code.name} = {code.value}\n    """')
        rows.append((str(code.value), markdown(after.partition('"""')[0])))
    return table("code | meaning", rows)


def error_table() -> str:
    """The error classes, each below the one that it is a kind of."""
    classes = [
        each
        for _, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, errors.ShardMergeError)
    ]
    classes.sort(key=lambda each: [c.__name__ for c in reversed(each.__mro__)])
    rows = [
        (f"`{each.__name__}`", f"`{each.__bases__[0].__name__}`", first_paragraph(each))
        for each in classes
    ]
    return table("class | a kind of | meaning", rows)


def code_sections() -> str:
    """Every code by family; each has an anchor of its own name."""
    parts = []
    for family in families():
        parts.append(f"## {family.digits.ljust(4, 'x')}: {family.title}\n\n{family.about}")
        for each in family.codes:
            parts.append(
                f'<a id="{each.code}"></a>\n\n### {each.code}: {each.title}\n\n'
                f"**Seen:** {each.seen}\n\n**Cause:** {each.cause}\n\n**Remedy:** {each.remedy}"
            )
    return "\n\n".join(parts)


def events() -> str:
    """The log events of the processes."""
    said, by_name = meanings().events, dict[str, list[Event]]()
    for each in logged_events():
        by_name.setdefault(each.name, []).append(each)
    rows = []
    for name, calls in by_name.items():
        fields = dict.fromkeys(field for call in calls for field in call.fields)
        processes = dict.fromkeys(_PROCESSES[call.package] for call in calls)
        rows.append(
            (f"`{name}`", calls[0].level, ", ".join(processes), ", ".join(fields), said[name])
        )
    rows.append(("`library_logged`", "any", "any", "message", said["library_logged"]))
    return table("event | level | process | fields | meaning", rows)


def event_fields() -> str:
    """The fields of the log events."""
    rows = [(f"`{name}`", meaning) for name, meaning in meanings().fields.items()]
    return table("field | value", rows)


def metrics() -> str:
    """The metrics of each process."""
    sections = []
    for process, held in PROCESSES.items():
        rows = [
            (
                f"`{family.name}`",
                family.kind.value,
                ", ".join(f"`{label}`" for label in family.labels),
                family.unit,
                markdown(family.meaning),
            )
            for family in held
        ]
        heads = "metric | type | labels | unit | meaning"
        sections.append(f"## {process.capitalize()}\n\n{table(heads, rows)}")
    return "\n\n".join(sections)


def generated() -> dict[str, str]:
    """Every generated part by its name."""
    pipeline = parse_pipeline(_MINIMAL, {})
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
