"""A source's binlog begins anew within one epoch: what is held, what goes on, what brings it back.

The way back is that of docs/how-to/fail-over.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.local.line import Line
from shardmerge.local.union import compare, read_table
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import RoutePolicies
from shardmerge.schemas.pipeline.first_rows import SPARK, first_rows_by
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.text import pipeline_text
from tests.breadth import further

from .conftest import ROOT

TBL, LOG = TargetTable("merged", "tbl"), TargetTable("merged", "log")
WITH_ORIGIN = Origin((OriginColumn(OriginPart.SHARD, "_shard"),))
AGAIN = ("load", "again", "s1/app.tbl")
ANEW = ("rebuild", "merged.tbl")


def routes(origin: Origin) -> tuple[RoutingRule, ...]:
    policies = RoutePolicies(origin=origin)
    return tuple(
        RoutingRule(".*", "app", name, "merged", name, policies=policies) for name in ("tbl", "log")
    )


@pytest.fixture
def line(request: pytest.FixtureRequest) -> Iterator[Line]:
    """A line with two tables on each of two sources."""
    directory = Path(tempfile.mkdtemp(prefix="e2e-back-", dir=ROOT / ".local"))
    line = Line(directory, routes=routes(request.param), access=partial(first_rows_by, SPARK))

    def prepare() -> None:
        for number, source in enumerate(("s1", "s2"), 1):
            run(
                line, source,
                "CREATE DATABASE app",
                "CREATE TABLE app.tbl (id INT PRIMARY KEY, v INT)",
                "CREATE TABLE app.log (id INT PRIMARY KEY, v INT)",
                f"INSERT INTO app.tbl VALUES ({number}0, 1)",
                f"INSERT INTO app.log VALUES ({number}0, 1)",
            )  # fmt: skip

    try:
        line.start(prepare)
        yield line
    finally:
        line.stop()


def run(line: Line, source: str, *statements: str) -> None:
    with line.connect(source) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def difference(line: Line, target: TargetTable) -> list[str]:
    with line.connect_target() as connection:
        merged = read_table(connection, target.database, target.table)
    if merged is None:
        return [f"no {target}"]
    shards, origin = [], "_shard" if "_shard" in merged.columns else ""
    for source in ("s1", "s2"):
        with line.connect(source) as connection:
            shard = read_table(connection, "app", target.table)
        assert shard is not None
        shards.append((f"{source}/app.{target.table}", shard))
    return [text[:300] for text in compare(merged, shards, shard_column=origin).differences]


def until_equal(line: Line, *targets: TargetTable) -> None:
    found = lambda: [text for target in targets for text in difference(line, target)]  # noqa: E731
    assert line.poll(found, seconds=180) == []


def held(line: Line) -> list[str]:
    """Why no shard of the table is held for its binlog; empty when one is."""
    shards = line.status(TBL)["shards"]
    codes = [shard.get("code") for shard in shards]
    return [] if "SM-1107" in codes else [f"held by {codes}"]


@further
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("line", "way"),
    [(WITH_ORIGIN, AGAIN), (NO_ORIGIN, ANEW)],
    indirect=["line"],
    ids=["again", "anew"],
)
def test_only_the_table_of_the_statement_stands_until_it_is_loaded_again(
    line: Line, way: tuple[str, ...]
) -> None:
    run(
        line, "s1",
        *(f"INSERT INTO app.tbl VALUES ({number}, 0)" for number in range(100, 200)),
        "ALTER TABLE app.tbl ADD a INT",
        "INSERT INTO app.tbl VALUES (200, 2, 2)",
    )  # fmt: skip
    until_equal(line, TBL, LOG)
    source = line.pipeline.sources[0]
    name = connector_name(line.pipeline, source)
    with closing(ConnectRest.of(line.pipeline.connect)) as rest:
        rest.stop(name)
        # As another server has it that has read the same transactions, behind the same address.
        read = (rest.offset(name) or {})["gtids"]
        run(line, "s1", "RESET MASTER", f"SET GLOBAL gtid_purged = '{read}'")
        rest.resume(name)

    run(
        line, "s1",
        "DELETE FROM app.tbl WHERE id = 100",
        "INSERT INTO app.tbl VALUES (201, 3, 3)",
        "ALTER TABLE app.tbl ADD b INT",
        "INSERT INTO app.tbl VALUES (202, 4, 4, 4)",
        "INSERT INTO app.log VALUES (11, 2)",
    )  # fmt: skip
    assert line.poll(lambda: held(line), seconds=120) == []
    run(line, "s2", "INSERT INTO app.tbl VALUES (21, 2)", "INSERT INTO app.log VALUES (21, 2)")
    until_equal(line, LOG)
    line.kill("sink")  # it goes on from what is stored
    run(line, "s1", "INSERT INTO app.log VALUES (12, 2)")
    until_equal(line, LOG)
    with line.connect_target() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id FROM merged.tbl WHERE id IN (21, 202)")
        assert cursor.fetchall() == ((21,),)
    assert "SM-2113" not in line.log_path("sink").read_text(encoding="utf-8")

    line.pipeline = replace(
        line.pipeline, sources=(replace(source, epoch=1), *line.pipeline.sources[1:])
    )
    line.pipeline_path.write_text(pipeline_text(line.pipeline), encoding="utf-8")
    ordered(line, "connect", "apply")
    with line.connect("s1") as connection, connection.cursor() as cursor:
        cursor.execute("SHOW CREATE TABLE app.tbl")
        ((_, table),) = cursor.fetchall()
    ordered(line, "command", "set-schema", table, "--shard", "s1/app.tbl")
    line.kill("sink")
    ordered(line, *way)
    until_equal(line, TBL, LOG)
    run(line, "s1", "ALTER TABLE app.tbl ADD c INT", "INSERT INTO app.tbl VALUES (203, 1, 1, 1, 1)")
    until_equal(line, TBL, LOG)


def ordered(line: Line, *words: str) -> None:
    """Give a command as an operator does."""
    done = CliRunner().invoke(main, [*words, "--pipeline", str(line.pipeline_path)])
    assert done.exit_code == 0, done.output
