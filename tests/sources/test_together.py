"""Shards of one target on servers of every kind at once, through the whole line."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from shardmerge.local.line import Line
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.union import compare, read_table
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Pipeline, Source

from .servers import ROOT, Kind, kinds, start

NAMES = kinds("mysql97", "mariadb118")
pytestmark = pytest.mark.timeout(900)
COLUMNS = (
    "id INT PRIMARY KEY, name VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    " NOT NULL, price DECIMAL(9,2), made DATETIME(3), bits VARBINARY(8)"
)
WAIT_S = 240.0
ROWS = 40
"""Of each shard, before and behind its DDL."""


class LineOfKinds(Line):
    """A line whose sources are servers of several kinds."""

    def __init__(self, directory: Path, names: Sequence[str]) -> None:
        super().__init__(directory, [RoutingRule(".*", "app", "t", "merged", "t")], "kinds")
        self._kinds_wanted = names
        self.kinds: list[Kind] = []

    def _make_pipeline(self) -> Pipeline:
        self.kinds = [start(self._stack, name, n) for n, name in enumerate(self._kinds_wanted, 1)]
        sources = tuple(
            Source(
                name=kind.name,
                host="127.0.0.1",
                port=kind.server.port,
                user=USER,
                password=PASSWORD,
                server_id=6000 + number,
                databases="app",
                flavour=kind.server.flavour,
                version=kind.server.version,
            )
            for number, kind in enumerate(self.kinds)
        )
        return replace(super()._make_pipeline(), sources=sources)


@pytest.fixture(scope="module")
def line() -> Iterator[LineOfKinds]:
    """Every server with rows that a snapshot reads."""
    directory = Path(tempfile.mkdtemp(prefix="kinds-", dir=ROOT / ".local"))
    line = LineOfKinds(directory, NAMES)

    def prepare() -> None:
        for number, kind in enumerate(line.kinds):
            kind.run("CREATE DATABASE app", f"CREATE TABLE app.t ({COLUMNS})")
            insert(kind, number * 1000)

    try:
        line.start(prepare=prepare)
        yield line
    finally:
        line.stop()
        line.clear()


def insert(kind: Kind, first: int, more: str = "") -> None:
    """Rows with ids of this shard alone."""
    values = ", ".join(
        f"({n}, 'ä€ {n}', {n}.25, '2026-01-02 03:04:05.678', 0x00ff{n % 256:02x}{more})"
        for n in range(first, first + ROWS)
    )
    kind.run(f"INSERT INTO app.t VALUES {values}")


def test_shards_on_every_kind_of_server_are_one_table(line: LineOfKinds) -> None:
    for number, kind in enumerate(line.kinds):
        first = number * 1000
        kind.run(
            f"UPDATE app.t SET name = 'changed' WHERE id = {first}",
            f"DELETE FROM app.t WHERE id = {first + 1}",
            "ALTER TABLE app.t ADD COLUMN note VARCHAR(10) CHARACTER SET utf8mb4"
            " COLLATE utf8mb4_general_ci NOT NULL DEFAULT 'none'",
            "ALTER TABLE app.t MODIFY price DECIMAL(12,2)",
        )
        insert(kind, first + 500, ", 'new'")

    assert line.poll(lambda: faults(line), WAIT_S) == []


def faults(line: LineOfKinds) -> list[str]:
    """How the target differs from all shards together."""
    with line.connect_target() as connection:
        target = read_table(connection, "merged", "t")
    if target is None:
        return ["the target does not exist"]
    shards = []
    for kind in line.kinds:
        with line.connect(kind.name) as connection:
            table = read_table(connection, "app", "t")
        assert table is not None
        shards.append((kind.name, table))
    found = compare(target, shards)
    count = len(line.kinds) * (2 * ROWS - 1)
    if found.rows != count:
        return [f"{found.rows} rows instead of {count}"]
    return list(found.differences)
