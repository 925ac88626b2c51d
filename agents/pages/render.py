"""Makes each page from values. The templates escape every text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from urllib.parse import quote, urlencode

from jinja2 import Environment, FunctionLoader, StrictUndefined

from shardmerge.agents.holds.reports import HoldReport
from shardmerge.agents.preview.shapes import ShownPlan
from shardmerge.agents.status.ages import age, moment, ms_of
from shardmerge.agents.status.column_history import ColumnEvent
from shardmerge.agents.status.connector_log import UNASKED, ConnectorsView
from shardmerge.agents.status.execution import Stand, StandingGroup
from shardmerge.agents.status.matrix import Cell, matrix
from shardmerge.agents.status.overview import connector_needs, summary
from shardmerge.agents.status.timeline import changes, lanes, runs, timeline
from shardmerge.agents.status.validations import (
    DIFFERENCE_WORDS,
    is_before_statement,
    is_old,
    repairs,
    rows_differ,
    shortcomings,
)
from shardmerge.agents.status.view import SinksView, TargetView
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.pipeline.given_commands import OF_TARGET
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.progress import is_silent

from .asset_files import assets
from .plots import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, parts, plots
from .visitor import NOBODY, Visitor

MOST_NAMES = 200
"""Names of shards that a page shows for one group. The search finds the others."""
MOST_EVENTS = 8
MOST_OPEN = 100
MOST_ENTRIES = 60
"""Decisions on one page."""

_ORDER = (
    "silent", "failing", "refused", "unread", "held", "changed", "differs", "disabled", "paused",
    "waiting", "new", "flows",
)  # fmt: skip
"""The states of targets, the worst first."""
_SIGNS = (
    (Cell.SAME, "✓", "as the target has it"),
    (Cell.MISSING, "–", "never had it"),
    (Cell.DROPPED, "✗", "dropped it"),
    (Cell.RENAMED, "↷", "has it under another name"),
    (Cell.TYPE, "≠", "has another type"),
    (Cell.LEFT_OUT, "⊘", "has it, but it is not merged"),
    (Cell.WAITS, "!", "the shard is held because of its change of this column"),
)
_MARKS = {
    "emit": "▲", "hold": "■", "no-op": "○", "released": "▷", "refused": "✗", "executed": "✓",
    "debt": "◷", "waiting": "◷", "executing": "…", "not known": "?",
}  # fmt: skip
_STAND_MARKS = {
    Stand.HERE: "◷", Stand.EARLIER: "◷", Stand.SOMEWHERE: "◷", Stand.OPEN: "…",
    Stand.PASSED: "✓", Stand.UNREACHED: "…", Stand.UNKNOWN: "?", Stand.LEFT: "",
}  # fmt: skip
_EVENTS = {
    "first": "came", "added": "added", "dropped": "dropped", "left out": "left out",
    "renamed": "renamed to {0}", "changed": "changed to {0}", "target": "the target changed",
}  # fmt: skip

_STANDS = {
    Stand.HERE: "waits here", Stand.EARLIER: "stands earlier", Stand.SOMEWHERE: "waits",
    Stand.UNREACHED: "not reached", Stand.OPEN: "open", Stand.PASSED: "passed",
    Stand.LEFT: "left", Stand.UNKNOWN: "not known",
}  # fmt: skip
_WAITS = {
    "hold": ("held here", "held"), "lock": ("waits for the lock", "waiting"),
    "gate": ("waits at the gate", "waiting"), "pause": ("paused", "paused"),
}  # fmt: skip
_STAND_LOOKS = {
    Stand.PASSED: "executed", Stand.OPEN: "executing", Stand.HERE: "waiting",
    Stand.EARLIER: "waiting", Stand.SOMEWHERE: "waiting",
}  # fmt: skip
_KINDS = {
    "conflict": "a conflict", "lock": "the DDL lock", "unreadable": "a schema that is not known",
    "pause": "paused",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Frame:
    """What every page has.

    Attributes:
        pipeline: Name of the pipeline.
        caught_up: Whether the worker has read everything that was in the topics when it started.
        revision: The view's revision when the page was made. A page is stale when the view has
            another one.
        now_ms: Milliseconds since 1970.
        visitor: Who sees the page.
    """

    pipeline: str
    caught_up: bool
    revision: int
    now_ms: int
    visitor: Visitor = NOBODY


@dataclass(frozen=True, slots=True)
class Asked:
    """What a reader asked a target's page for.

    Attributes:
        search: Part of a shard's name.
        every_column: Whether to show also columns that all shards have as the target does.
        page: Which part of the groups of shards to show, from 1.
        older: How many of the newest decisions to skip.
    """

    search: str = ""
    every_column: bool = False
    page: int = 1
    older: int = 0


@dataclass(frozen=True, slots=True)
class PlanAsked:
    """What a reader asked the page of plans for.

    Attributes:
        target: A target's name.
        shards: Part of the names of the shards that would execute the statement.
        sql: The statement.
    """

    target: str = ""
    shards: str = ""
    sql: str = ""


def overview_page(
    frame: Frame,
    targets: Iterable[TargetView],
    ignored: Sequence[Decision] = (),
    sinks: SinksView | None = None,
    connectors: ConnectorsView = UNASKED,
) -> str:
    """The page at ``/``.

    Args:
        frame: What every page has.
        targets: All targets.
        ignored: Decisions about statements that concern no shard, newest first.
        sinks: Where the sinks run; None when that is not known.
        connectors: What is known of the pipeline's connectors.
    """
    summaries = [summary(target, frame.now_ms, connectors) for target in targets]
    summaries.sort(key=lambda s: (not s.is_urgent, _ORDER.index(s.state), s.target.target))
    is_late = sinks is not None and is_silent(sinks.ts_ms, frame.now_ms)
    return filled(
        "overview.html",
        frame=frame, summaries=summaries, ignored=ignored, sinks=sinks, is_late=is_late,
        connectors=connectors, connector_needs=list(connector_needs(connectors, frame.now_ms)),
    )  # fmt: skip


def target_page(
    frame: Frame,
    target: TargetView,
    asked: Asked = Asked(),
    connectors: ConnectorsView = UNASKED,
) -> str:
    """The page of one target."""
    entries = timeline(target, asked.older, MOST_ENTRIES)
    older = asked.older + MOST_ENTRIES
    path = _link(target)

    def part(page: int) -> str:
        query = {"search": asked.search, "page": str(page)}
        if asked.every_column:
            query["columns"] = "all"
        return f"{path}?{urlencode(query)}#matrix"

    return filled(
        "target.html",
        frame=frame,
        target=target,
        asked=asked,
        summary=summary(target, frame.now_ms, connectors),
        matrix=matrix(target, asked.search, every_column=asked.every_column, page=asked.page),
        plots=plots(target.samples),
        parts=parts(target.samples),
        lanes=lanes(target),
        changes=changes(target),
        runs=runs(entries),
        shown=len(entries),
        part=part,
        more_entries=older < len(target.decisions),
        older=f"{path}?{urlencode({'older': older})}#timeline",
    )


def holds_page(
    frame: Frame, target: str, reports: Sequence[HoldReport], error: ShardMergeError | None = None
) -> str:
    """Why shards of a target are held or paused, with both sides and the ways out.

    Args:
        frame: What every page has.
        target: Name of the target.
        reports: The reasons.
        error: Why the agents' tables cannot be read; None if they were read.
    """
    return filled(
        "holds.html",
        frame=frame,
        target=target,
        path=path_of(target),
        reports=reports,
        kinds=_KINDS,
        **error_values(error),
    )


def plan_page(
    frame: Frame,
    targets: Sequence[str],
    asked: PlanAsked = PlanAsked(),
    plan: ShownPlan | None = None,
    error: ShardMergeError | None = None,
) -> str:
    """The form for a pasted statement, and its plan.

    Args:
        frame: What every page has.
        targets: The targets that the form offers.
        asked: The contents of the form.
        plan: The plan; None before a statement was pasted, and if it cannot be planned.
        error: Why it cannot be planned.
    """
    return filled(
        "plan.html", frame=frame, targets=targets, asked=asked, plan=plan, **error_values(error)
    )


def missing_page(frame: Frame, name: str) -> str:
    """The page for a target that no decision names."""
    return filled("missing.html", frame=frame, name=name)


def filled(template: str, **values: object) -> str:
    """A template with its values."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    folder = resources.files(__package__) / "templates"
    found = Environment(
        loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals.update(
        age=age,
        moment=moment,
        ms_of=ms_of,
        coded=coded,
        count=_count,
        number=_number,
        amount=_amount,
        rate=_rate,
        plot_size=(WIDTH, HEIGHT),
        field={"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
        seconds=_seconds,
        link=_link,
        event_words=_event_words,
        version=lambda name: assets()[name].version,
        signs=_SIGNS,
        sign={kind: sign for kind, sign, _ in _SIGNS},
        marks=_MARKS,
        stand_marks=_STAND_MARKS,
        stand_words=_stand_words,
        lasted=_lasted,
        rows_differ=rows_differ,
        is_old=is_old,
        is_before_statement=is_before_statement,
        difference_words=DIFFERENCE_WORDS,
        shortcomings=shortcomings,
        repairs=repairs,
        most_names=MOST_NAMES,
        most_events=MOST_EVENTS,
        most_open=MOST_OPEN,
        of_target=[kind.value for kind in OF_TARGET],
        here="",
    )
    return found


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _number(number: float) -> str:
    return f"{number:,.0f}"


def _amount(number: float) -> str:
    """A number with as many digits as a reader needs: one behind the point below 10."""
    return f"{number:,.1f}".removesuffix(".0") if number < 10 else _number(number)


def _rate(rows_per_s: float | None) -> str:
    return "–" if rows_per_s is None else f"{rows_per_s:,.0f}"


def _seconds(lag_s: float | None) -> str:
    return "not known" if lag_s is None else f"{lag_s:,.0f} s"


def _stand_words(group: StandingGroup) -> tuple[str, str]:
    """How far shards are, in a few words, and the look of these words."""
    if group.stand in (Stand.HERE, Stand.SOMEWHERE) and group.kind in _WAITS:
        return _WAITS[group.kind]
    return _STANDS[group.stand], _STAND_LOOKS.get(group.stand, "")


def _lasted(group: StandingGroup) -> str:
    """The times between a change and the passing of its gate, such as ``2 s to 6 s``."""
    if group.fastest_ms is None or group.slowest_ms is None:
        return ""
    least, most = age(1, 1 + group.fastest_ms), age(1, 1 + group.slowest_ms)
    return least if least == most else f"{least} to {most}"


def _link(target: TargetView) -> str:
    return path_of(str(target.target))


def path_of(target: str) -> str:
    """The path of a target's page."""
    return f"/target/{quote(target, safe='')}"


def error_values(error: ShardMergeError | None) -> dict[str, str]:
    """An error as the values ``error`` and ``hint`` of a template; "" for none."""
    if error is None:
        return {"error": "", "hint": ""}
    return {"error": coded(error.code, error.message), "hint": error.hint}


def _event_words(event: ColumnEvent) -> str:
    """An event in a few words."""
    told = _EVENTS[event.kind].format(event.detail)
    if event.kind == "target":
        return told
    return f"{told} on {event.shard}" if event.count == 1 else f"{told}, {event.count:,} times"
