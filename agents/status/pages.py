"""The status pages: a view in, HTML or plain JSON values out. Pure; everything is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any
from urllib.parse import quote

from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.plain import to_plain
from shardmerge.schemas.records.progress import SinkProgress

from .view import ColumnView, ShardView, StatusView, TargetView

REFRESH_S = 5
RECENT = 20
"""Decisions on the first page; a target's own page shows all that are kept."""

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1em;
  color: #1c2430; background: #fff; }
h1 { font-size: 1.4em; } h2 { font-size: 1.2em; margin-top: 2em; border-top: 2px solid #d5dbe3;
  padding-top: .8em; } h3 { font-size: 1em; margin: 1.3em 0 .4em; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; color: #5a6675; }
th, td { text-align: left; vertical-align: top; padding: .25em .8em .25em 0;
  border-bottom: 1px solid #e6eaef; } th { font-weight: 600; color: #5a6675; }
code, pre { font: 13px/1.4 ui-monospace, monospace; } pre { margin: 0; white-space: pre-wrap;
  overflow-wrap: anywhere; } a { color: #0b57a4; } .quiet { color: #5a6675; }
.good { color: #11683a; } .bad { color: #a4161a; font-weight: 600; } .note { color: #8a5300; }
nav a { margin-right: 1em; } footer { margin: 3em 0 1em; color: #5a6675; }
"""

_OUTCOME_CLASS = {Outcome.EMIT: "good", Outcome.HOLD: "bad", Outcome.NOOP: "quiet"}


def index_page(view: StatusView, pipeline: str, caught_up: bool) -> str:
    """The page at ``/``: every target in short, and what was ignored."""
    targets = view.targets()
    body = [_overview(targets)]
    for target in targets:
        body.append(_section(target, RECENT))
    body.append(_ignored(view.ignored()[:RECENT]))
    return _page(f"{pipeline} — shardmerge", pipeline, "".join(body), caught_up)


def target_page(target: TargetView, pipeline: str, caught_up: bool) -> str:
    """The page of one target, with every decision that is kept."""
    body = _section(target, len(target.decisions))
    return _page(f"{target.target} — {pipeline}", pipeline, body, caught_up)


def missing_page(name: str, pipeline: str, caught_up: bool) -> str:
    """What is served for a target that no decision names."""
    body = f"<p>No decision names a target <code>{escape(name)}</code> yet.</p>"
    return _page(f"not found — {pipeline}", pipeline, body, caught_up)


def status_json(view: StatusView, pipeline: str, caught_up: bool) -> dict[str, Any]:
    """The JSON twin of the first page."""
    return {
        "pipeline": pipeline,
        "caught_up": caught_up,
        "targets": [target_json(t, RECENT) for t in view.targets()],
        "ignored": [to_plain(d) for d in view.ignored()[:RECENT]],
    }


def target_json(target: TargetView, decisions: int | None = None) -> dict[str, Any]:
    """The JSON twin of a target's page."""
    return {
        "target": str(target.target),
        "version": target.version,
        "columns": [
            {
                "name": c.name,
                "definition": c.definition,
                "id": c.id,
                "partial": c.partial,
                "missing_on": [str(s) for s in c.missing_on],
            }
            for c in target.columns
        ],
        "shards": [
            {
                "shard": str(s.shard),
                "state": s.state,
                "version": s.version,
                "position": str(s.position),
                "reason": s.reason,
                "hint": s.hint,
                "code": s.code,
            }
            for s in target.shards
        ],
        "decisions": [to_plain(d) for d in target.decisions[:decisions]],
        "progress": to_plain(target.progress),
    }


def _coded(code: str, text: str) -> str:
    """A reason with its code before it, as HTML."""
    return escape(coded(code, text))


def _page(title: str, pipeline: str, body: str, caught_up: bool) -> str:
    warning = "" if caught_up else '<p class="note">Still reading the topics: not complete yet.</p>'
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="refresh" content="{REFRESH_S}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>"
        f'<h1><a href="/">{escape(pipeline)}</a></h1>{warning}{body}'
        f"<footer>Refreshes every {REFRESH_S} s · the same as JSON: "
        '<a href="/api/status">/api/status</a> · <a href="/healthz">/healthz</a></footer>'
        "</body></html>"
    )


def _overview(targets: Sequence[TargetView]) -> str:
    if not targets:
        return (
            "<p>No decision yet. The first one comes with the snapshot of the first routed table."
            "</p>"
        )
    rows = [
        (
            f'<a href="{_link(t)}">{escape(str(t.target))}</a>',
            str(t.version),
            _executed(t),
            str(len(t.live)),
            _count(len(t.held), "bad"),
            _count(_open_count(t.progress), "note"),
            _count(_parked_count(t.progress), "bad"),
            f"{t.progress.rows:,}" if t.progress else '<span class="quiet">–</span>',
        )
        for t in targets
    ]
    heads = ("target", "version", "executed", "shards", "held", "open DDL", "parked", "rows")
    return _table(heads, rows)


def _section(target: TargetView, decisions: int) -> str:
    return (
        f'<h2><a href="{_link(target)}">{escape(str(target.target))}</a> '
        f'<span class="quiet">version {target.version}</span></h2>'
        f"{_columns(target.columns)}{_shards(target.shards)}{_progress(target.progress)}"
        f"{_decisions(target.decisions[:decisions], len(target.decisions))}"
    )


def _columns(columns: Sequence[ColumnView]) -> str:
    rows = [
        (
            f"<code>{escape(c.name)}</code>",
            f"<code>{escape(c.definition)}</code>",
            f'<span class="note">partial: missing on {_names(c.missing_on)}</span>'
            if c.partial
            else '<span class="quiet">on every shard</span>',
        )
        for c in columns
    ]
    if not rows:
        return '<h3>Joined schema</h3><p class="quiet">none</p>'
    return "<h3>Joined schema</h3>" + _table(("column", "type", "where"), rows)


def _shards(shards: Sequence[ShardView]) -> str:
    rows = []
    for shard in shards:
        style = {"live": "good", "held": "bad"}.get(shard.state, "quiet")
        why = f"<pre>{_coded(shard.code, shard.reason)}</pre>" if shard.reason else ""
        hint = f'<div class="note">→ {escape(shard.hint)}</div>' if shard.hint else ""
        rows.append(
            (
                f"<code>{escape(str(shard.shard))}</code>",
                f'<span class="{style}">{escape(shard.state)}</span>',
                f"<code>{escape(str(shard.position))}</code>",
                str(shard.version),
                why + hint,
            )
        )
    return "<h3>Shards</h3>" + _table(("shard", "state", "since position", "version", "why"), rows)


def _progress(progress: SinkProgress | None) -> str:
    head = "<h3>Sink</h3>"
    if progress is None:
        return head + '<p class="quiet">The sink has reported nothing about this target yet.</p>'
    body = (
        f"<p>{progress.rows:,} rows applied; every statement up to version "
        f"{progress.executed_version} is executed, debts aside.</p>"
    )
    if failure := progress.failure:
        body += (
            f'<p class="bad">The rows of {escape(failure.where)} cannot be applied: '
            f"{_coded(failure.code, failure.message)}</p>"
            f"<p>{failure.times:,} tries in a row failed, since {_time(failure.since_ms)}.</p>"
            + (f'<div class="note">→ {escape(failure.hint)}</div>' if failure.hint else "")
        )
    statements = [
        (
            f"{s.version}.{s.ordinal}",
            f'<span class="{"bad" if s.state == "refused" else "note"}">{escape(s.state)}</span>',
            f"<pre>{escape(s.sql)}</pre>",
            _time(s.since_ms),
            f"<pre>{_coded(s.code, s.detail)}</pre>",
        )
        for s in progress.open
    ]
    if statements:
        body += _table(("version", "state", "open statement", "since", "why"), statements)
    parked = [
        (
            f"<code>{escape(str(s.shard))}</code>",
            f"<code>{escape(str(s.position or ''))}</code>",
            _time(s.since_ms),
            f"{s.parked:,}",
            f"<pre>{_coded(s.code, s.waiting)}</pre>"
            + (f'<div class="note">→ {escape(s.hint)}</div>' if s.hint else ""),
        )
        for s in progress.shards
        if s.waiting
    ]
    if parked:
        body += _table(("parked shard", "at position", "since", "rows at most", "why"), parked)
    overwritten = [
        (f"<code>{escape(str(s.shard))}</code>", f'<span class="bad">{s.overwritten:,}</span>')
        for s in progress.shards
        if s.overwritten
    ]
    if overwritten:
        body += _table(("shard", "rows written over others with their primary key"), overwritten)
    return head + body


def _decisions(decisions: Sequence[Decision], kept: int) -> str:
    rows = [
        (
            str(d.version),
            f"<code>{escape(str(d.shard or ''))}</code>"
            f'<div class="quiet"><code>{escape(str(d.position))}</code></div>',
            f'<span class="{_OUTCOME_CLASS.get(d.outcome, "")}">{escape(str(d.outcome))}</span>',
            f"<pre>{escape(d.ddl)}</pre>",
            _answer(d),
        )
        for d in decisions
    ]
    note = f" <span class=quiet>(last {len(rows)} of {kept})</span>" if len(rows) < kept else ""
    heads = ("version", "shard, position", "decision", "upstream DDL", "target DDL and reason")
    return f"<h3>Decisions{note}</h3>" + _table(heads, rows)


def _answer(decision: Decision) -> str:
    statements = "".join(
        f"<pre>{escape(s.sql)}</pre>"
        f'<div class="quiet">{escape(s.kind)}: {_coded(s.code, s.reason)}</div>'
        for s in decision.statements
    )
    reason = "" if statements else f"<pre>{_coded(decision.code, decision.reason)}</pre>"
    notes = [_coded(warning.code, warning.text) for warning in decision.notices]
    if decision.hint:
        notes.append(escape(f"→ {decision.hint}"))
    if decision.releases:
        notes.append(escape(f"releases {', '.join(map(str, decision.released))}"))
    return statements + reason + "".join(f'<div class="note">{note}</div>' for note in notes)


def _ignored(decisions: Sequence[Decision]) -> str:
    if not decisions:
        return ""
    rows = [
        (
            f"<code>{escape(d.id.source)}</code>",
            f"<code>{escape(str(d.position))}</code>",
            f"<pre>{escape(d.ddl)}</pre>",
            escape(d.reason),
        )
        for d in decisions
    ]
    return "<h2>Ignored: no routed shard is concerned</h2>" + _table(
        ("source", "position", "DDL", "why"), rows
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _link(target: TargetView) -> str:
    return escape(f"/target/{quote(str(target.target), safe='')}")


def _names(shards: Sequence[object]) -> str:
    return escape(", ".join(map(str, shards)))


def _time(ms: int) -> str:
    """A moment as text; nothing for 0, which a record of an earlier sink has."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC" if ms else ""


def _count(number: int, style: str) -> str:
    return f'<span class="{style if number else "quiet"}">{number}</span>'


def _open_count(progress: SinkProgress | None) -> int:
    return len(progress.open) if progress else 0


def _parked_count(progress: SinkProgress | None) -> int:
    return sum(1 for s in progress.shards if s.waiting) if progress else 0


def _executed(target: TargetView) -> str:
    if target.progress is None:
        return '<span class="quiet">–</span>'
    done = target.progress.executed_version
    return f'<span class="{"good" if done >= target.version else "note"}">{done}</span>'
