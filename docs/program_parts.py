"""The generated parts about commands, errors, log events and metrics."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from docs.log_events import Event, logged_events, meanings
from docs.tables import first_paragraph, markdown, table
from shardmerge.cli.endings import ExitCode
from shardmerge.connectors.metrics.catalog import PROCESSES
from shardmerge.schemas.codes.registry import families
from shardmerge.schemas.model import errors

_PROCESSES = {
    "agents": "agents", "cli": "cli", "connectors": "watchdog", "local": "keeper",
    "spark_sink": "sink",
}  # fmt: skip
"""Package → the process in which its code runs."""


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
