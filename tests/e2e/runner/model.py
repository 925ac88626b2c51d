"""A scenario as a value: one rollout over some shards, and what the target must hold at its end.

The fields are those of the case files' README. An unknown field is an error: a field that nobody
reads is an expectation that nobody checks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from shardmerge.schemas.routing import RenamePolicy


class ScenarioError(ValueError):
    """A scenario file is not what its README says."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A source table, with the statement that makes it."""

    source: str
    table: str
    create: str


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens, or that must be seen, in the global order.

    Exactly one of ``sql``, ``event``, ``operator``, ``wait``, ``target_sql`` is set, or none for a
    step that only expects.

    Attributes:
        number: ``n`` of the file; 0 without one.
        timestamp: Seconds since 1970 that the session's ``now()`` shall show; None for real time.
        expect: What must be seen after it, see ``EXPECT``.
    """

    number: int
    source: str = ""
    table: str = ""
    sql: str = ""
    timestamp: int | None = None
    event: str = ""
    operator: str = ""
    wait: str = ""
    target_sql: str = ""
    expect: Mapping[str, Any] | None = None

    @property
    def is_ddl(self) -> bool:
        """Whether the statement changes a schema."""
        verb = self.sql.split(None, 1)[0].lower() if self.sql else ""
        return verb in ("alter", "create", "drop", "rename")


@dataclass(frozen=True, slots=True)
class Final:
    """What must hold at the end; None means: not told.

    Attributes:
        complete: Whether ``columns`` are all columns of the target.
        rows: Values in the order of ``columns``.
        state: The end is not equality but this state, such as ``blocked on shard 2``.
        as_shards: Columns and indexes are those of each shard, which all have the same.
    """

    columns: tuple[Mapping[str, Any], ...] | None
    indexes: Mapping[str, Mapping[str, Any]] | None
    row_count: int | None
    rows: tuple[tuple[Any, ...], ...] | None
    state: str
    complete: bool
    as_shards: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole file.

    Attributes:
        target: `merged.t`; where no table is routed to another name, the last statement's table.
        databases: Databases of the shards, as the file names them.
        shard_column: Whether the target has the origin column `_shard`, in its keys, and rows of
            dropped shards are deleted.
        leave_out: Whether the route leaves out columns whose names begin with `secret`, and rows
            whose column `a` is not another one than `other`.
        renames: What becomes of a column that one shard renames first.
        any_order: Whether a schema change may run on one source before that of another is decided.
    """

    id: str
    title: str
    mode: str
    target: str
    shards: tuple[Shard, ...]
    before: tuple[Step, ...]
    prepared: tuple[str, ...]
    steps: tuple[Step, ...]
    final: Final
    shard_column: bool = False
    leave_out: bool = False
    renames: RenamePolicy = RenamePolicy.MAP
    any_order: bool = False

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources that take part, sorted."""
        return tuple(
            sorted({s.source for s in self.shards} | {s.source for s in self.steps} - {""})
        )

    @property
    def databases(self) -> tuple[str, ...]:
        """Databases that the shards may be in: those that the route names."""
        return ("app1", "app2")

    @property
    def kills(self) -> bool:
        """Whether it kills a part that all scenarios share."""
        return any(
            step.event and not step.event.startswith(("restart_worker", "start_worker"))
            for step in self.steps
        )

    def ends_in_conflict(self) -> bool:
        """Whether the last expectation is a conflict that nobody resolves."""
        told = [step.expect for step in self.steps if step.expect]
        if not told:
            return False
        conflicts = ("conflict", "conflict_or_blocked", "task_error")
        return any(key in told[-1] for key in conflicts) or not told[-1].get(
            "target_equals_union", True
        )


TOP = frozenset(
    "id title mode test origin task_conf route target sources rows_before_start target_prepared "
    "steps final notes shard_column leave_out renames any_order".split()
)
STEP = frozenset(
    "n source table sql session_timestamp ddl_class joined_after not_run_locally expect event "
    "operator wait target_sql".split()
)
FINAL = frozenset(
    "basis columns indexes row_count rows source_rows rows_upstream rows_dm shards_differ state "
    "conflict_reason as_shards".split()
)
COLUMN = frozenset(
    "name type null default charset collation generated auto_increment default_differs "
    "null_differs type_differs".split()
)
CHECKED = frozenset(
    "target_equals_union rows columns target_rows target_column_count target_query shows task "
    "held emitted".split()
)
"""Expectations that are checked. ``emitted`` is ours: the target statements of the step's decision,
as a list of regular expressions to be found in them (without backticks), ``[]`` for none."""
TOLD = frozenset(
    "conflict column conflict_or_blocked on lock locks task_error target_error statement decision "
    "downstream stage note synced unsynced resolved dropped pause keep freeze".split()
)
"""Expectations about the original system: its lock states, its words, and its limits, which are
errors there and need not be here. The end of the scenario judges what they lead to."""
MERGED = "merged.t"
ROUTES = (
    "app1.t_* of every source -> merged.t",
    "app1.t_*, app2.t_* of every source -> merged.t",
)


def load(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        ScenarioError: Not YAML, or a field is unknown, missing or of the wrong kind.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ScenarioError(f"{path.name}: {error}") from None
    return parse(document, path.name)


def parse(document: Any, where: str) -> Scenario:
    """A scenario from a parsed YAML document; ``where`` names it in errors."""
    known(document, TOP, where)
    for name in ("id", "mode", "route", "target", "sources", "steps", "final"):
        if name not in document:
            raise ScenarioError(f"{where}: {name} is missing")
    if document["route"] not in ROUTES:
        raise ScenarioError(f"{where}: route {document['route']!r} is none of {ROUTES}")
    if document["target"] != MERGED:
        raise ScenarioError(f"{where}: target must be {MERGED}")
    steps = _with_clock([_step(entry, where) for entry in document["steps"]])
    own_names = str(document.get("task_conf", "")).endswith("no-routes")
    return Scenario(
        id=document["id"],
        title=document.get("title", ""),
        mode=document["mode"],
        target=[step.table for step in steps if step.sql][-1] if own_names else MERGED,
        shards=tuple(_shard(entry, where) for entry in document["sources"]),
        before=tuple(_step(entry, where) for entry in document.get("rows_before_start") or ()),
        prepared=tuple(document.get("target_prepared") or ()),
        steps=steps,
        final=_final(document["final"], where),
        shard_column=bool(document.get("shard_column")),
        leave_out=bool(document.get("leave_out")),
        renames=_policy(document.get("renames", RenamePolicy.MAP), where),
        any_order=bool(document.get("any_order")),
    )


def _policy(name: object, where: str) -> RenamePolicy:
    if name not in tuple(RenamePolicy):
        raise ScenarioError(f"{where}: renames {name!r} is none of {', '.join(RenamePolicy)}")
    return RenamePolicy(str(name))


def known(entry: Any, names: frozenset[str], where: str) -> None:
    """Raise when an entry is not a mapping or has a field that is not in ``names``."""
    if not isinstance(entry, dict):
        raise ScenarioError(f"{where}: {entry!r} is not a mapping")
    if unknown := sorted(set(entry) - names):
        raise ScenarioError(f"{where}: unknown field {unknown[0]!r}")


def _shard(entry: Any, where: str) -> Shard:
    known(entry, frozenset(("source", "table", "create")), f"{where}: sources")
    return Shard(entry["source"], entry["table"], entry["create"])


def _step(entry: Any, where: str) -> Step:
    where = f"{where}: step {entry.get('n', '?') if isinstance(entry, dict) else '?'}"
    known(entry, STEP, where)
    doings = [key for key in ("sql", "event", "operator", "wait", "target_sql") if key in entry]
    if len(doings) > 1 or (not doings and "expect" not in entry):
        raise ScenarioError(f"{where}: one of sql, event, operator, wait, target_sql or expect")
    if "sql" in entry and not {"source", "table"} <= set(entry):
        raise ScenarioError(f"{where}: sql needs source and table")
    expect = entry.get("expect")
    if expect is not None:
        known(expect, CHECKED | TOLD, f"{where}: expect")
    wait = entry.get("wait", "")
    if wait:
        known(wait, frozenset(("until",)), f"{where}: wait")
        wait = wait["until"]
    return Step(
        number=entry.get("n", 0),
        source=entry.get("source", ""),
        table=entry.get("table", ""),
        sql=entry.get("sql", ""),
        timestamp=entry.get("session_timestamp"),
        event=entry.get("event", ""),
        operator=entry.get("operator", ""),
        wait=wait,
        target_sql=entry.get("target_sql", ""),
        expect=expect,
    )


def _with_clock(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with the time of each statement from the first one on that has one.

    The files tell it only for statements that name now(), but defaults use it too. Measured: the
    rows of the files were computed with a clock that goes on by a second with each number.
    """
    found: list[Step] = []
    told: Step | None = None
    for step in steps:
        timestamp = step.timestamp
        if timestamp is not None:
            told = step
        elif told is not None and told.timestamp is not None and step.sql and step.number:
            timestamp = told.timestamp + step.number - told.number
        found.append(replace(step, timestamp=timestamp))
    return tuple(found)


def _final(entry: Any, where: str) -> Final:
    known(entry, FINAL, f"{where}: final")
    columns = entry.get("columns")
    # No shard is left then. The target stays, without rows: no table has no columns.
    deserted = columns == []
    for column in columns or ():
        known(column, COLUMN, f"{where}: final: columns")
    indexes = entry.get("indexes")
    if deserted:
        columns = indexes = None
    # The rows of the shards are what a correct merge holds, whatever the original system held.
    rows = entry.get("source_rows", entry.get("rows_upstream", entry.get("rows")))
    return Final(
        columns=None if columns is None else tuple(columns),
        indexes=None if indexes is None else {k: _index(k, v, where) for k, v in indexes.items()},
        row_count=None if "source_rows" in entry else entry.get("row_count"),
        rows=None if rows is None else tuple(tuple(row) for row in rows),
        state=entry.get("state", ""),
        complete="basis" in entry,
        as_shards=bool(entry.get("as_shards")),
    )


def _index(name: str, entry: Any, where: str) -> Mapping[str, Any]:
    if isinstance(entry, list):
        return {"columns": entry}
    known(entry, frozenset(("unique", "columns")), f"{where}: final: index {name}")
    return dict(entry)


def rename(sql: str, case: str) -> str:
    """Give a statement's databases a case's prefix: ``app1.t_1`` becomes ``<case>_app1.t_1``.

    Names inside quoted strings stay as they are.
    """
    pieces = re.split(r"('(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\")", sql)
    return "".join(
        piece
        if number % 2
        else re.sub(r"(?<![\w.`])(`?)(app[12]|merged)\b(?=`?\s*(?:\.|$))", rf"\1{case}_\2", piece)
        for number, piece in enumerate(pieces)
    )
