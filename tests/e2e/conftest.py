"""The line, started once per session; scenarios play on it in the background from the start."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardmerge.local.demo import Demo
from shardmerge.local.line import Line
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import Mode, RoutePolicies, RowsPolicy
from shardmerge.schemas.pipeline.routing import RoutingRule
from tests.whole import IS_WHOLE

from .runner.cases import CASE_ROUTES, Pool, routes_of
from .runner.model import load, parse
from .runner.pace import polled_rarely
from .runner.rollouts import rollout

ROOT = Path(__file__).resolve().parents[2]
SEEDS = (1015, 1019, 1020, 1051, 1118) if IS_WHOLE else (1015, 1118)
"""Of random rollouts that once ended wrongly; `make rollouts` plays others."""
SCENARIOS = (
    *(load(path) for path in sorted((Path(__file__).parent / "scenarios").glob("*.yaml"))),
    *(parse(rollout(seed), f"rollout {seed}") for seed in SEEDS),
)
ROUTES = (
    *CASE_ROUTES,
    *routes_of(SCENARIOS),
    RoutingRule(".*", "app", r"tbl\d+", "merged", "tbl"),
    # Shards of both sources in one row topic.
    RoutingRule(
        ".*",
        "shared_app",
        r"t_\d+",
        "shared_merged",
        "t",
        row_topic="shared.t",
        policies=RoutePolicies(
            origin=Origin((OriginColumn(OriginPart.SHARD, "_shard"),), in_keys=True),
            on_drop=RowsPolicy.DELETE,
        ),
    ),
    RoutingRule(
        ".*",
        "placed_app",
        r"t_\d+",
        "placed_merged",
        "t",
        policies=RoutePolicies(origin=Origin((OriginColumn(OriginPart.POSITION, "_place"),))),
    ),
    RoutingRule(".*", "renewed_app", r"t_\d+", "renewed_merged", "t"),
    RoutingRule(
        ".*",
        "lockwaits_app",
        r"t_\d+",
        "lockwaits_merged",
        "t",
        policies=RoutePolicies(mode=Mode.PESSIMISTIC),
    ),
    # Databases of one test each; two rules that contradict each other for `clash_2`.
    RoutingRule(".*", r"(?P<test>(?:order|bad|plain)\w*)_app", r"t_\d+", r"\g<test>_merged", "t"),
    RoutingRule(".*", "bad_route_app", "t_2", "elsewhere", "t"),
)


@pytest.fixture(scope="session")
def _started() -> Iterator[tuple[Line, Pool, Demo]]:
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="e2e-", dir=ROOT / ".local"))
    line = Line(directory, routes=ROUTES, access=polled_rarely, target_binlog=True)
    pool = Pool(line, SCENARIOS, later=(), threads=6)
    demo = Demo(line, say=lambda text: print(text, flush=True))

    def prepare() -> None:
        pool.prepare()
        demo.prepare()
        with line.connect("s1") as connection, connection.cursor() as cursor:
            # Rows of a snapshot, alike and without a key: all are read at one place.
            cursor.execute("CREATE DATABASE placed_app")
            cursor.execute("CREATE TABLE placed_app.t_0 (a VARCHAR(20), v INT)")
            cursor.execute(f"INSERT INTO placed_app.t_0 VALUES {', '.join(['(1, 1)'] * 50)}")

    try:
        line.start(prepare=prepare)
        yield line, pool, demo
    finally:
        pool.stop()
        line.stop()


@pytest.fixture(scope="session")
def pool(_started: tuple[Line, Pool, Demo]) -> Pool:
    """Every scenario's future result; playing begins with the first test that asks."""
    _, pool, _ = _started
    pool.start()
    return pool


@pytest.fixture(scope="session")
def demo(_started: tuple[Line, Pool, Demo]) -> Demo:
    """The three-shard example, with its existing rows in place."""
    return _started[2]


@pytest.fixture
def line(_started: tuple[Line, Pool, Demo]) -> Line:
    """The running line, with every part up."""
    line = _started[0]
    line.wait_ready()
    return line


@pytest.fixture(scope="session")
def handed_over(_started: tuple[Line, Pool, Demo]) -> Line:
    """The line without its own agents and sink, for good: tests that start others come last."""
    line = _started[0]
    line.wait_ready()
    line.hand_over()
    return line
