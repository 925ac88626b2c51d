"""Many scenarios on one line, at once: case names, the list of what must wait, results."""

from __future__ import annotations

import fnmatch
import re
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pymysql
import yaml

from shardmerge.local.line import Line
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import (
    DEFAULT_POLICIES,
    Mode,
    RenamePolicy,
    RoutePolicies,
    RowsPolicy,
)
from shardmerge.schemas.pipeline.routing import RoutingRule

from .model import MERGED, Scenario, ScenarioError, known
from .play import Player
from .stage import Failed

SHARD_COLUMN = "_shard"
WANTED = "a <> 'other'"
"""The rows that are merged of shards some of whose rows and columns are left out."""


OF_SHARD = RoutePolicies(
    origin=Origin((OriginColumn(OriginPart.SHARD, SHARD_COLUMN),), in_keys=True),
    on_drop=RowsPolicy.DELETE,
)
"""The policies of targets that know which shard a row is of."""


def _route(prefix: str, policies: RoutePolicies = DEFAULT_POLICIES, **options: Any) -> RoutingRule:
    case = rf"(?P<case>{prefix}\d+)_app[12]"
    return RoutingRule(".*", case, "t_.*", r"\g<case>_merged", "t", policies=policies, **options)


_RENAMES = {RenamePolicy.MAP: "sc", RenamePolicy.HOLD: "sh", RenamePolicy.COPY: "sy"}
CASE_ROUTES = (
    *(_route(prefix, RoutePolicies(renames=policy)) for policy, prefix in _RENAMES.items()),
    _route("sp", RoutePolicies(mode=Mode.PESSIMISTIC)),
    _route("sl", leave_out="secret.*", where=WANTED),
    _route("so", OF_SHARD),
    RoutingRule(".*", r"(?P<own>sn\d+_app[12])", "(?P<table>t_.*)", r"\g<own>", r"\g<table>"),
)
"""One rule for all scenarios of a kind: each has databases, and so a target, of its own."""
LATER = Path(__file__).resolve().parents[1] / "later.yaml"
POLICIES = LATER.with_name("policies.yaml")


@dataclass(frozen=True, slots=True)
class Later:
    """Scenarios that need a feature that is not there yet; ``pattern`` is of their ids."""

    pattern: str
    reason: str


@dataclass(frozen=True, slots=True)
class Result:
    """How a scenario ended.

    Attributes:
        listed: The reason for which it is listed as to fail; "" when it must pass.
        detail: Why it failed, or what was left out.
    """

    id: str
    passed: bool
    seconds: float
    detail: str = ""
    listed: str = ""

    @property
    def counts_as_passed(self) -> bool:
        """Passed, and must."""
        return self.passed and not self.listed

    @property
    def as_listed(self) -> bool:
        """Failed, as the list says."""
        return not self.passed and bool(self.listed)

    @property
    def counts_as_failed(self) -> bool:
        """Failed and must not, or passed although it is listed as to fail."""
        return self.passed == bool(self.listed)

    @property
    def word(self) -> str:
        """The result in one word."""
        if self.as_listed:
            return "later"
        return "passed" if self.counts_as_passed else "FAILED"


def load_later(path: Path = LATER) -> list[Later]:
    """Read the list; raises ``ScenarioError`` when it is not one."""
    entries = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    found = []
    for entry in entries:
        known(entry, frozenset(("ids", "reason")), path.name)
        if not entry.get("reason"):
            raise ScenarioError(f"{path.name}: {entry} has no reason")
        found += [Later(pattern, entry["reason"]) for pattern in entry["ids"]]
    return found


def with_policies(scenarios: Sequence[Scenario], path: Path = POLICIES) -> list[Scenario]:
    """The scenarios with the policies of renames whose end they tell, where a list names them.

    Raises:
        ScenarioError: The file is no such list.
    """
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    known(document, frozenset(RenamePolicy), path.name)
    policies = {name: RenamePolicy(policy) for policy, names in document.items() for name in names}
    return [replace(s, renames=policies.get(s.id, s.renames)) for s in scenarios]


def reason_of(scenario: Scenario, later: Sequence[Later]) -> str:
    """Why a scenario is listed; "" when it is not."""
    return next((e.reason for e in later if fnmatch.fnmatch(scenario.id, e.pattern)), "")


def routes_of(scenarios: Sequence[Scenario]) -> tuple[RoutingRule, ...]:
    """The rules of scenarios that the usual ones do not do for, by their places in the list.

    A scenario that is played again is another case, so that its name may have any number.
    """
    found: list[RoutingRule] = []
    for place, scenario in enumerate(scenarios, 1):
        if scenario.route.is_usual:
            continue
        databases = "|".join(map(re.escape, scenario.databases))
        database, table = scenario.target.split(".")
        case = rf"(?P<case>su{place}_\d+)_(?:{databases})"
        mode = Mode.PESSIMISTIC if scenario.mode == Mode.PESSIMISTIC else Mode.OPTIMISTIC
        policies = OF_SHARD if scenario.shard_column else DEFAULT_POLICIES
        policies = replace(policies, mode=mode, renames=scenario.renames)
        options: dict[str, Any] = (
            {"leave_out": "secret.*", "where": WANTED} if scenario.leave_out else {}
        )
        target = rf"\g<case>_{database}"
        tables = scenario.route.tables
        found.append(RoutingRule(".*", case, tables, target, table, policies=policies, **options))
    return tuple(found)


def case_name(scenario: Scenario, number: int, place: int = 0) -> str:
    """The name that prefixes a scenario's databases; it leads to the route of its kind.

    ``place`` is the scenario's in the list, ``number`` the case's.
    """
    if not scenario.route.is_usual:
        return f"su{place or number}_{number}"
    if scenario.target != MERGED:
        return f"sn{number}"
    if scenario.shard_column:
        return f"so{number}"
    if scenario.leave_out:
        return f"sl{number}"
    if scenario.mode == Mode.PESSIMISTIC:
        return f"sp{number}"
    return f"{_RENAMES[scenario.renames]}{number}"


class Pool:
    """Plays scenarios in threads; ``prepare`` makes their shards, ``start`` begins to play.

    Case names are numbers in the order given, so a name in a log leads to its scenario. Scenarios
    that kill parts of the line play after all others, one at a time.
    """

    def __init__(
        self, line: Line, scenarios: Sequence[Scenario], later: Sequence[Later], threads: int
    ) -> None:
        self._later = later
        self._line = line
        self._players = [Player(s, case_name(s, n), line) for n, s in enumerate(scenarios, 1)]
        self._broken: dict[str, str] = {}
        self._threads = threads
        self._executors: list[ThreadPoolExecutor] = []
        self.results: dict[str, Future[Result]] = {}

    def prepare(self) -> None:
        """Make every scenario's shards; for ``Line.start``, before the connectors start."""
        for player in self._players:
            try:
                player.prepare()
            except Exception as error:  # it fails by itself, the others play
                self._broken[player.scenario.id] = f"{type(error).__name__}: {error}"

    def start(self) -> None:
        """Begin to play; ``results`` then has a future for every scenario."""
        many = ThreadPoolExecutor(self._threads, thread_name_prefix="scenario")
        alone = ThreadPoolExecutor(1, thread_name_prefix="alone")
        self._executors = [alone, many]
        killing = [player for player in self._players if player.scenario.kills]
        for player in self._players:
            if player not in killing:
                self.results[player.scenario.id] = many.submit(self._play, player)
        alone.submit(wait, list(self.results.values()))
        for player in killing:
            self.results[player.scenario.id] = alone.submit(self._play, player)

    def stop(self) -> None:
        """Drop what has not begun, wait for what has."""
        for executor in self._executors:
            executor.shutdown(wait=True, cancel_futures=True)

    def again(self, first: Result) -> Result:
        """Play a scenario that failed once more, in this thread."""
        (scenario,) = [p.scenario for p in self._players if p.scenario.id == first.id]
        place = 1 + next(n for n, p in enumerate(self._players) if p.scenario.id == first.id)
        name = case_name(scenario, len(self._players) + 1, place)
        player = Player(scenario, name, self._line)
        self._players.append(player)
        self._broken.pop(first.id, None)
        try:
            player.prepare()
        except (Failed, pymysql.MySQLError) as error:
            self._broken[first.id] = str(error)
        second = self._play(player)
        return replace(second, detail=f"{second.detail} | played again; first: {first.detail}")

    def _play(self, player: Player) -> Result:
        scenario = player.scenario
        threading.current_thread().name = scenario.id
        listed = reason_of(scenario, self._later)
        began = time.monotonic()
        passed, detail = False, self._broken.get(scenario.id, "")
        if not detail:
            try:
                player.play()
                passed, detail = True, "; ".join(player.notes)
            except Failed as failure:
                detail = str(failure)
            except (ShardMergeError, pymysql.MySQLError) as error:
                detail = f"{type(error).__name__}: {error}"
            except Exception:  # one broken scenario must not end the others
                detail = traceback.format_exc()
        if passed and listed:
            detail = "unexpectedly passes: remove it from later.yaml"
        elif listed:
            detail = f"{listed} | {detail}"
        detail = f"[{player.case}] {detail}" if detail else f"[{player.case}]"
        return Result(scenario.id, passed, time.monotonic() - began, detail, listed)


def play_all(
    line: Line,
    scenarios: Sequence[Scenario],
    later: Sequence[Later],
    threads: int,
    *,
    report: Callable[[Result], None],
    outlive: bool = False,
) -> list[Result]:
    """Start the line, play everything, report each as it ends.

    A scenario that fails among the others is played again alone, as another case: whether
    something still moves can be told wrongly while many share the machine. Both tries are told.
    """
    pool = Pool(line, scenarios, later, threads)
    line.start(prepare=pool.prepare, outlive=outlive)
    pool.start()
    results = []
    try:
        failed = []
        for future in as_completed(pool.results.values()):
            result = future.result()
            if result.counts_as_failed and not result.passed:
                failed.append(result)
                continue
            results.append(result)
            report(result)
        for result in failed:
            results.append(pool.again(result))
            report(results[-1])
    finally:
        pool.stop()
    return results
