"""A terminal: shapes as tables, and progress bars, both made by rich."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from shardmerge.agents.holds.shapes import ShownConflict
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.records.drift import DriftKind

from .decision_shapes import DecisionLine
from .shapes import Explanation, PipelineStatus, Shape, ShownSchema, TargetStatus
from .text import OVERWRITTEN, drift_line, plain_lines, short_time, side_name, validation_line

_STYLES = {
    "flows": "green", "executed": "green", "RUNNING": "green", "emit": "green", "held": "bold red",
    "hold": "bold red", "refused": "bold red", "FAILED": "bold red", "missing": "bold red",
    "waits": "yellow", "paused": "yellow", "debt": "yellow", "waiting": "yellow",
}  # fmt: skip


def console() -> Console:
    """The terminal that stdout is."""
    return Console()


def bars() -> Progress:
    """Progress bars on stderr, which vanish at the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def print_on(screen: Console, shapes: Sequence[Shape | ConnectorState]) -> None:
    """Print shapes of one kind."""
    for each in renderables(shapes):
        # A line of text is never broken: it may hold a command.
        screen.print(each, soft_wrap=isinstance(each, Text))


def renderables(shapes: Sequence[Shape | ConnectorState]) -> Iterator[RenderableType]:
    """What a terminal shows of some shapes of one kind.

    Decisions are rows of one table, and so are connectors.
    """
    if decisions := [shape for shape in shapes if isinstance(shape, DecisionLine)]:
        yield _decisions(decisions)
    if connectors := [shape for shape in shapes if isinstance(shape, ConnectorState)]:
        yield _connectors(connectors)
    for shape in shapes:
        match shape:
            case PipelineStatus():
                yield from _status(shape)
            case Explanation():
                yield from _explanation(shape)
            case ShownConflict():
                yield _conflict(shape)
            case ShownSchema():
                yield Syntax("\n".join(plain_lines(shape)), "sql", background_color="default")
            case DecisionLine() | ConnectorState():
                pass  # a row of a table above


def table(heads: Sequence[str], rows: Iterable[Sequence[str | Text]], *, title: str = "") -> Table:
    """A table; text is shown as it is, never read as markup.

    Args:
        heads: Of the columns.
        rows: As many cells as heads.
        title: Above it.
    """
    made = Table(*heads, title=title or None, title_justify="left", title_style="bold")
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


def styled(word: str) -> Text:
    """A state in the colour that says whether it is good."""
    return Text(word, style=_STYLES.get(word, ""))


def _status(status: PipelineStatus) -> Iterator[RenderableType]:
    yield Text(f"{status.pipeline}, as of {short_time(status.at)}", style="bold")
    if status.connectors:
        yield _connectors(status.connectors)
    for line in plain_lines(status):
        if line.startswith(("agents: ", "target server ")):
            yield Text(line)
    for target in status.targets:
        yield from _target(target)
    for fault in status.faults:
        yield Text(f"fault: {fault}", style="bold red")
    if not status.faults:
        yield Text("no faults", style="green")


def _connectors(found: Sequence[ConnectorState]) -> Table:
    rows = [(c.name, styled(c.state), c.reason) for c in found]
    return table(("connector", "state", "reason"), rows)


def _target(target: TargetStatus) -> Iterator[RenderableType]:
    executed = f", executed up to {target.executed_version}" if target.reported else ""
    title = f"{target.target}: version {target.version}{executed}, {target.rows:,} rows applied"
    rows = []
    for shard in target.shards:
        why = coded(shard.code, shard.reason) + (f"\n→ {shard.hint}" if shard.hint else "")
        if shard.overwritten:
            why += f"\n{shard.overwritten:,} rows or more written over others: {OVERWRITTEN}"
        parked = f"{shard.parked:,}" if shard.parked else ""
        state = styled(shard.state)
        if shard.by:
            state.append(f"\nby {shard.by}")
        since = short_time(shard.since)
        rows.append((shard.shard, state, shard.position, since, parked, why.strip()))
    heads = ("shard", "state", "at", "since", "rows at most", "why")
    yield table(heads, rows, title=title)
    if target.disabled_since:
        by = f" by {target.disabled_by}" if target.disabled_by else ""
        since = short_time(target.disabled_since)
        yield Text(f"its schema stays as it is: disabled{by} since {since}", style="yellow")
    if target.open:
        open_ = [
            (
                s.statement,
                styled(s.state),
                f"{s.sql}\n{coded(s.why_code, s.why)}".strip(),
                short_time(s.since),
                coded(s.code, s.detail),
            )
            for s in target.open
        ]
        yield table(("statement", "state", "SQL", "since", "why"), open_)
    for each in target.drift:
        yield Text(drift_line(each), style="" if each.kind == DriftKind.HARMLESS else "yellow")
    if target.validation is not None:
        style = "yellow" if target.validation.what else ""
        yield Text(validation_line(target.validation), style=style)
    if (failure := target.failure) is not None:
        text = f"rows of {failure.where} cannot be applied: {coded(failure.code, failure.message)}"
        yield Text(f"{text} ({failure.times:,} tries since {short_time(failure.since)})", "red")


def _explanation(found: Explanation) -> Iterator[RenderableType]:
    parked = f", {found.parked:,} rows wait at most" if found.parked else ""
    yield (
        Text(f"{found.shard} of {found.target}: ", style="bold")
        .append_text(styled(found.state))
        .append(parked)
    )
    for cause in found.causes:
        yield Text(f"because {coded(cause.code, cause.what)}", style="yellow")
        facts = []
        if cause.since:
            facts.append(f"since {short_time(cause.since)}")
        if cause.position:
            facts.append(f"at {cause.position}")
        if cause.others:
            facts.append(f"waits for {', '.join(cause.others)}")
        if facts:
            yield Text("  " + "; ".join(facts))
        for way in cause.ways:
            # No table: a command that is wrapped into a cell could not be pasted.
            if way.command:
                yield Text("  way out: ").append(way.command, style="bold cyan")
                yield Text(f"    {way.does}")
            else:
                yield Text(f"  way out: {way.does}")
    for waiting in found.waiting:
        yield Text(f"waits for it: {waiting}")
    for unanswered in found.unanswered:
        yield Text(f"not known: {unanswered}", style="yellow")


def _decisions(lines: Sequence[DecisionLine]) -> Table:
    rows = []
    for line in lines:
        whys = [coded(why.code, why.text) for why in line.statement_reasons]
        told = [text for pair in zip(line.statements, whys, strict=True) for text in pair]
        pairs = zip(line.warning_codes, line.warnings, strict=True)
        told += [coded(code, warning) for code, warning in pairs]
        answer = "\n".join(told) or coded(line.code, line.reason)
        if line.hint:
            answer += f"\n→ {line.hint}"
        state = styled(line.outcome)
        if line.state:
            state.append(f"\n{line.state}", style=_STYLES.get(line.state, ""))
        asked = line.asked + (f"\nby {line.by}" if line.by else "")
        rows.append(
            (f"{line.target}\n{line.version}", short_time(line.time),
             f"{line.shard}\n{line.position}".strip(), asked, state, answer)
        )  # fmt: skip
    heads = ("target, version", "time", "shard, position", "asked", "decision", "answer")
    return table(heads, rows)


def _conflict(conflict: ShownConflict) -> Table:
    since = f" since {short_time(conflict.since)}" if conflict.since else ""
    title = f"{conflict.target}: {conflict.kind}{since}: {coded(conflict.code, conflict.reason)}"
    rows: list[tuple[str, str]] = [("held", "\n".join(conflict.held))]
    rows += [(side_name(side), "\n".join(side.shards)) for side in conflict.sides]
    if conflict.hint:
        rows.append(("→", conflict.hint))
    return table(("definition", "shards"), rows, title=title)
