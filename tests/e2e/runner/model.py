"""A scenario as a value: one rollout over some shards, and what the target must hold at its end.

The fields are those of the case files' README; what other hands write for the same is read too. An
unknown field is an error: a field that nobody reads is an expectation that nobody checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from shardmerge.schemas.model.policies import RenamePolicy

from .parts import part_event
from .routes import USUAL, Route, read_route

ANY = "*"
"""Any reason for which a source refuses a statement."""
_REFUSED = ("refused", "source_refuses", "source_error", "sql_error", "must_fail", "fails", "error")
"""Names of fields that say that the source must refuse the step's statement."""
_PENDING = ("locks_pending", "pending_locks", "pending", "lock_pending")
"""Names of fields that say that locks stay pending."""
_PARTITIONS = ("partitions", "row_partitions", "partition_count")


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
        refused: What of its error the source must say when it refuses the statement (a number or
            a part of the text); "" when it must take it, ``ANY`` for whatever reason.
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
    refused: str = ""

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
        route: Which shards are merged.
        partitions: Of each row topic of its shards; 0 is the line's own number.
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
    route: Route = USUAL
    partitions: int = 0

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources that take part, sorted."""
        return tuple(
            sorted({s.source for s in self.shards} | {s.source for s in self.steps} - {""})
        )

    @property
    def databases(self) -> tuple[str, ...]:
        """Databases that the shards may be in: those that the route names."""
        return self.route.databases

    @property
    def names(self) -> tuple[str, ...]:
        """Databases of the shards and of the target."""
        return tuple(dict.fromkeys((*USUAL.databases, *self.databases, self.target.split(".")[0])))

    @property
    def kills(self) -> bool:
        """Whether it kills, or stops, a part that all scenarios share.

        A source's connector is stopped while a table without a primary key is read as a whole.
        """
        if any("primary key" not in shard.create.lower() for shard in self.shards):
            return True
        found = (part_event(step.event) for step in self.steps if step.event)
        return any(event is None or event.part != "connector" for event in found)

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
) | set(_PARTITIONS)
STEP = frozenset(
    "n source table sql session_timestamp ddl_class joined_after not_run_locally expect event "
    "operator wait target_sql note".split()
) | set(_REFUSED)
FINAL = frozenset(
    "basis columns indexes row_count rows source_rows rows_upstream rows_dm shards_differ state "
    "conflict_reason as_shards".split()
) | set(_PENDING)
COLUMN = frozenset(
    "name type null default charset collation generated auto_increment default_differs "
    "null_differs type_differs".split()
)
CHECKED = frozenset(
    "target_equals_union rows columns target_rows target_column_count target_query shows task "
    "held emitted lock".split()
) | set(_PENDING)
"""Expectations that are checked. ``emitted`` is ours: the target statements of the step's decision,
as a list of regular expressions to be found in them (without backticks), ``[]`` for none."""
TOLD = frozenset(
    "conflict column conflict_or_blocked on locks task_error target_error statement decision "
    "downstream stage note synced unsynced resolved dropped pause keep freeze".split()
)
"""Expectations about the original system: its lock states, its words, and its limits, which are
errors there and need not be here. The end of the scenario judges what they lead to."""
MERGED = "merged.t"


def load(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        ScenarioError: Not YAML, or a field is unknown, missing or of the wrong kind.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        return parse(document, path.name)
    except ScenarioError:
        raise
    except (OSError, yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise ScenarioError(f"{path.name}: {type(error).__name__}: {error}") from None


def load_all(paths: Iterable[Path]) -> tuple[list[Scenario], dict[str, str]]:
    """The scenarios of the files that can be read, and why the others cannot, by name.

    A file that cannot be read, or that has the id of an earlier one, is a scenario that fails.
    """
    scenarios: list[Scenario] = []
    unreadable: dict[str, str] = {}
    known_ids: set[str] = set()
    for path in paths:
        try:
            scenario = load(path)
        except ScenarioError as error:
            unreadable[path.stem] = str(error)
            continue
        if scenario.id in known_ids:
            unreadable[path.stem] = f"{path.name}: another file has the id {scenario.id!r}"
            continue
        known_ids.add(scenario.id)
        scenarios.append(scenario)
    return scenarios, unreadable


def parse(document: Any, where: str) -> Scenario:
    """A scenario from a parsed YAML document; ``where`` names it in errors."""
    known(document, TOP, where)
    for name in ("id", "mode", "route", "target", "sources", "steps", "final"):
        if name not in document:
            raise ScenarioError(f"{where}: {name} is missing")
    shards = tuple(_shard(entry, where) for entry in document["sources"])
    homes = [_split(shard.table) for shard in shards]
    try:
        route, target = read_route(str(document["route"]), [h for h in homes if h[0]])
    except ValueError as error:
        raise ScenarioError(f"{where}: {error}") from None
    if document["target"].replace("`", "") != target:
        raise ScenarioError(f"{where}: the route's target is {target}, not {document['target']}")
    steps = _with_clock([_step(entry, where) for entry in document["steps"]])
    own_names = str(document.get("task_conf", "")).endswith("no-routes")
    return Scenario(
        id=document["id"],
        title=document.get("title", ""),
        mode=document["mode"],
        target=[step.table for step in steps if step.sql][-1] if own_names else target,
        shards=shards,
        before=tuple(_step(entry, where) for entry in document.get("rows_before_start") or ()),
        prepared=tuple(document.get("target_prepared") or ()),
        steps=steps,
        final=_final(document["final"], where),
        shard_column=bool(document.get("shard_column")),
        leave_out=bool(document.get("leave_out")),
        renames=_policy(document.get("renames", RenamePolicy.MAP), where),
        any_order=bool(document.get("any_order")),
        route=route,
        partitions=_partitions(document, where),
    )


def _partitions(document: Mapping[str, Any], where: str) -> int:
    found = [document[name] for name in _PARTITIONS if name in document]
    if not found:
        return 0
    if not isinstance(found[0], int) or found[0] < 1:
        raise ScenarioError(f"{where}: {found[0]!r} is no number of partitions")
    return found[0]


def _split(table: str) -> tuple[str, str]:
    database, _, name = table.replace("`", "").rpartition(".")
    return database, name


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
    told = [entry[name] for name in _REFUSED if name in entry]
    if isinstance(expect, dict) and "sql" in entry:
        # Beside a statement these words are about it.
        told += [expect[name] for name in _REFUSED if name in expect]
        expect = {name: value for name, value in expect.items() if name not in _REFUSED} or None
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
        refused=_refused(told),
    )


def _refused(told: Sequence[Any]) -> str:
    """What the source must say; a number or a text, or ``true`` for anything."""
    for value in told:
        if value is True or value == "":
            return ANY
        if value not in (None, False):
            return str(value)
    return ""


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
        state=entry.get("state", "")
        or ("locks pending" if any(entry.get(name) for name in _PENDING) else ""),
        complete="basis" in entry,
        as_shards=bool(entry.get("as_shards")),
    )


def _index(name: str, entry: Any, where: str) -> Mapping[str, Any]:
    if isinstance(entry, list):
        return {"columns": entry}
    known(entry, frozenset(("unique", "columns")), f"{where}: final: index {name}")
    return dict(entry)


def pending(expect: Mapping[str, Any]) -> bool | int | None:
    """Whether (or how many) changes must wait for a lock; None when nothing is told."""
    for name in _PENDING:
        if name in expect:
            wanted: bool | int = expect[name]
            return wanted
    return True if expect.get("lock") == "pending" else None


def rename(sql: str, case: str, databases: Sequence[str] = ("app1", "app2", "merged")) -> str:
    """Give a statement's databases a case's prefix: ``app1.t_1`` becomes ``<case>_app1.t_1``.

    Names inside quoted strings stay as they are.
    """
    pieces = re.split(r"('(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\")", sql)
    names = "|".join(map(re.escape, databases))
    return "".join(
        piece
        if number % 2
        else re.sub(rf"(?<![\w.`])(`?)({names})\b(?=`?\s*(?:\.|$))", rf"\1{case}_\2", piece)
        for number, piece in enumerate(pieces)
    )
