"""Shards of one target on servers of every kind at once, through the whole line."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.local.line import Line
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.union import compare, read_table
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import RoutePolicies, RowOperation, RowsPolicy
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Pipeline, Source
from shardmerge.schemas.pipeline.text import pipeline_text

from .servers import ROOT, Kind, kinds, start

NAMES = kinds("mysql97", "mariadb118")
pytestmark = pytest.mark.timeout(900)
COLUMNS = (
    "id INT PRIMARY KEY, name VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    " NOT NULL, price DECIMAL(9,2), made DATETIME(3), bits VARBINARY(8)"
)
ARCHIVE = RoutingRule(
    ".*",
    r"shop_(?P<region>[a-z]+)_(?P<number>\d+)",
    "orders",
    "archive",
    "orders",
    on_truncate=RowsPolicy.KEEP,
    ignore=(RowOperation.DELETE, RowOperation.TRUNCATE),
    policies=RoutePolicies(
        origin=Origin(
            (
                OriginColumn(OriginPart.SHARD, "_shard"),
                OriginColumn(OriginPart.GROUP, "_region", "region", "varchar(8)"),
                OriginColumn(OriginPart.GROUP, "_number", "number", "smallint unsigned"),
            ),
            in_keys=True,
        )
    ),
)
WAIT_S = 240.0
ROWS = 40
"""Of each shard, before and behind its DDL."""


class LineOfKinds(Line):
    """A line whose sources are servers of several kinds."""

    def __init__(self, directory: Path, names: Sequence[str]) -> None:
        routes = [RoutingRule(".*", "app", "t", "merged", "t"), ARCHIVE]
        super().__init__(directory, routes, "kinds")
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
                databases="app|shop_.*",
                flavour=kind.server.flavour,
                version=kind.server.version,
                connector=(("max.batch.size", "512"),) if number == 0 else (),
            )
            for number, kind in enumerate(self.kinds)
        )
        pipeline = super()._make_pipeline()
        passed = (("max.batch.size", "1024"), ("max.queue.size", "4096"))
        connect = replace(pipeline.connect, connector=passed)
        return replace(pipeline, sources=sources, connect=connect)


@pytest.fixture(scope="module")
def line() -> Iterator[LineOfKinds]:
    """Every server with rows that a snapshot reads."""
    directory = Path(tempfile.mkdtemp(prefix="kinds-", dir=ROOT / ".local"))
    line = LineOfKinds(directory, NAMES)

    def prepare() -> None:
        for number, kind in enumerate(line.kinds):
            shop = shop_of(number)
            kind.run(
                "CREATE DATABASE app",
                f"CREATE TABLE app.t ({COLUMNS})",
                f"CREATE DATABASE {shop}",
                f"CREATE TABLE {shop}.orders (id INT PRIMARY KEY, what VARCHAR(9))",
                f"INSERT INTO {shop}.orders VALUES (1, 'one'), (2, 'two'), (3, 'three')",
            )
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


def shop_of(number: int) -> str:
    """The database of a shard whose name tells its region and number."""
    return f"shop_{'ab'[number % 2]}_{number}"


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


def test_ignored_operations_and_groups_of_names_reach_the_target(line: LineOfKinds) -> None:
    expected = []
    for number, kind in enumerate(line.kinds):
        shop = shop_of(number)
        kind.run(
            f"DELETE FROM {shop}.orders WHERE id = 1",
            f"UPDATE {shop}.orders SET what = 'changed' WHERE id = 2",
            f"UPDATE {shop}.orders SET id = 30 WHERE id = 3",  # a delete and an insert, in Kafka
            f"REPLACE INTO {shop}.orders VALUES (2, 'replaced')",
            f"TRUNCATE TABLE {shop}.orders",
            f"ALTER TABLE {shop}.orders ADD COLUMN n INT NOT NULL DEFAULT 7",
            f"INSERT INTO {shop}.orders VALUES (4, 'four', 4)",
        )
        origin = (f"{kind.name}/{shop}.orders", "ab"[number % 2], number)
        kept = ((1, "one", 7), (2, "replaced", 7), (4, "four", 4), (30, "three", 7))
        expected += [(*row, *origin) for row in kept]

    def differs() -> list[str]:
        found = archived(line)
        return [] if found == sorted(expected) else [f"{found}"]

    assert line.poll(differs, WAIT_S) == []


def archived(line: LineOfKinds) -> list[tuple[object, ...]]:
    """The rows of the archive."""
    with line.connect_target() as connection:
        table = read_table(connection, "archive", "orders")
    columns = ("id", "what", "n", "_shard", "_region", "_number")
    if table is None or not set(columns) <= set(table.columns):
        return []
    assert table.key == ("id", "_shard", "_region", "_number")
    return sorted(tuple(row[column] for column in columns) for row in table.rows)


def test_properties_that_are_passed_through_reach_connect(line: LineOfKinds) -> None:
    rest = ConnectRest(line.pipeline.connect.url)
    for number, source in enumerate(line.pipeline.sources):
        config = rest.config(connector_name(line.pipeline, source)) or {}
        told = [config[key] for key in ("max.batch.size", "max.queue.size")]
        assert told == ["512" if number == 0 else "1024", "4096"]
    rest.close()


def test_check_tells_each_server_that_is_not_as_described(line: LineOfKinds) -> None:
    (line.directory / "right.toml").write_text(pipeline_text(line.pipeline))
    sources = [
        replace(source, flavour="mysql", version="5.6")
        if source.flavour == "mysql"
        else replace(source, version="10.2", sql_mode="PIPES_AS_CONCAT")
        for source in line.pipeline.sources
    ]
    target = replace(line.pipeline.target, kind="mariadb", version="10.11")
    wrong = replace(line.pipeline, sources=tuple(sources), target=target)
    (line.directory / "wrong.toml").write_text(pipeline_text(wrong))

    code, said = checked(line.directory / "right.toml")
    assert (code, "FAULT" in said) == (0, False), said
    code, said = checked(line.directory / "wrong.toml")
    assert code == 1
    faults = [text for text in said.splitlines() if text.startswith("FAULT")]
    for kind in line.kinds:
        told = "10.2" if kind.is_mariadb else "5.6"
        seen = f"it is {kind.server.flavour} {kind.server.version}"
        (fault,) = [text for text in faults if f"source {kind.name}:" in text and seen in text]
        assert f"the pipeline file says {told}" in fault
        assert f'set version = "{kind.server.version}"' in fault
        modes = [text for text in faults if f"source {kind.name}:" in text and "sql_mode" in text]
        assert len(modes) == (1 if kind.is_mariadb else 0)
    assert [
        text for text in faults if "target" in text and "the pipeline file says mariadb" in text
    ]


def checked(path: Path) -> tuple[int, str]:
    """How ``shardmerge check`` ends, and what it says."""
    result = CliRunner().invoke(main, ["check", "--pipeline", str(path)])
    return result.exit_code, result.output
