"""Bad input holds one shard: reason, position and remedy are told; the others go on."""

from __future__ import annotations

from collections.abc import Callable

from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.local.line import Line
from shardmerge.local.union import read_table
from shardmerge.schemas.model.names import ShardId, TargetTable

from .forge import put_row, put_schema_change


class Case:
    """Two shards of one target, each on its own source, under a test's name."""

    def __init__(self, line: Line, name: str) -> None:
        self.line = line
        self.database = f"{name}_app"
        self.target = TargetTable(f"{name}_merged", "t")
        self.bad = ShardId("s1", self.database, "t_1")
        for source in ("s1", "s2"):
            self.sql(source, f"CREATE DATABASE {self.database}")
            self.sql(source, f"CREATE TABLE {self.database}.t_1 (id INT PRIMARY KEY, a INT)")
        self.sql("s1", f"INSERT INTO {self.database}.t_1 VALUES (1, 1)")
        self.sql("s2", f"INSERT INTO {self.database}.t_1 VALUES (2, 2)")
        assert self.ids({1, 2}) == []

    def sql(self, source: str, *statements: str) -> None:
        with self.line.connect(source) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def ids(self, wanted: set[int]) -> list[str]:
        """Poll until the target holds exactly these rows."""

        def fault() -> list[str]:
            with self.line.connect_target() as connection:
                target = read_table(connection, self.target.database, self.target.table)
            found = {row["id"] for row in target.rows} if target else None
            return [] if found == wanted else [f"ids {found}, not {wanted}"]

        return self.line.poll(fault, seconds=120)

    def value_of(self, key: int) -> object:
        """The column ``a`` of one row in the target."""
        with self.line.connect_target() as connection:
            target = read_table(connection, self.target.database, self.target.table)
        assert target is not None
        return next(row["a"] for row in target.rows if row["id"] == key)

    def others_go_on(self) -> None:
        """The good shard's rows and DDL still arrive while the bad one stands."""
        self.sql(
            "s2",
            f"INSERT INTO {self.database}.t_1 VALUES (3, 3)",
            f"ALTER TABLE {self.database}.t_1 ADD COLUMN b INT",
            f"INSERT INTO {self.database}.t_1 VALUES (4, 4, 4)",
        )
        assert self.ids({1, 2, 3, 4}) == []


def shown(line: Line, case: Case) -> Callable[[], list[str]]:
    """Whether the status page tells why the bad shard stands, where, and what to do.

    The coordinator tells it of a shard that it holds, the sink of one whose rows it parks.
    """

    def fault() -> list[str]:
        status = line.status(case.target)
        held = [s for s in status.get("shards", ()) if s["shard"] == str(case.bad)]
        progress = (status.get("progress") or {}).get("shards", ())
        parked = [s for s in progress if ShardId(**s["shard"]) == case.bad]
        told = [(s["reason"], s["position"], s["hint"]) for s in held]
        told += [(s["waiting"], s["position"], s["hint"]) for s in parked]
        return [] if any(all(parts) for parts in told) else [f"the status page tells {told}"]

    return fault


def test_an_unparsable_statement_holds_its_shard(line: Line) -> None:
    case = Case(line, "bad_ddl")
    put_schema_change(line, case.bad, "ALTER TABLE t_1 FROBNICATE COLUMN a")
    case.sql("s1", f"INSERT INTO {case.database}.t_1 VALUES (11, 11)")
    assert line.observer.wait(lambda f: case.bad in f.held(case.target), 120)
    decision = line.observer.facts().held(case.target)[case.bad]
    assert decision.reason
    assert decision.hint
    case.others_go_on()
    assert line.poll(shown(line, case), seconds=60) == []

    # A statement that can be read does not tell the schema while it is not known.
    case.sql(
        "s1",
        f"ALTER TABLE {case.database}.t_1 MODIFY a BIGINT",
        f"INSERT INTO {case.database}.t_1 VALUES (12, 5000000000)",
    )
    schema = "CREATE TABLE t_1 (id INT PRIMARY KEY, a BIGINT)"
    described = CliRunner().invoke(
        main,
        [
            *("command", "set-schema", schema, "--pipeline", str(line.pipeline_path)),
            *("--shard", str(case.bad)),
        ],
    )
    assert described.exit_code == 0, described.output
    assert case.ids({1, 2, 3, 4, 11, 12}) == [], "rows before and behind the second statement"


def test_a_row_that_does_not_fit_its_tracked_schema_holds_its_shard(line: Line) -> None:
    case = Case(line, "bad_row")
    put_row(line, case.bad, {"id": 11, "a": 11, "stranger": 1}, {"id": 11})
    # Of the same partition as the bad row: rows of the shard's other one do not wait for it.
    case.sql("s1", f"UPDATE {case.database}.t_1 SET a = 12 WHERE id = 1")
    case.others_go_on()
    assert case.value_of(1) == 1, "a row behind the bad one was applied"
    assert line.poll(shown(line, case), seconds=60) == []
    assert line.poll(lambda: line.in_log("sink", str(case.bad)), seconds=10) == []


def test_a_table_that_two_rules_route_differently_is_held(line: Line) -> None:
    case = Case(line, "bad_route")
    case.sql("s1", f"CREATE TABLE {case.database}.t_2 (id INT PRIMARY KEY, a INT)")
    case.sql("s1", f"INSERT INTO {case.database}.t_2 VALUES (11, 11)")
    clash = ShardId("s1", case.database, "t_2")
    found = line.observer.wait(
        lambda f: any(d.shard == clash and d.outcome == "hold" for d in f.decisions), 120
    )
    assert found, "no decision holds the table"
    case.others_go_on()


def test_a_statement_that_the_target_refuses_holds_the_rows_that_need_it(line: Line) -> None:
    case = Case(line, "bad_target")
    with line.connect_target() as connection, connection.cursor() as cursor:
        # By hand on the target: the sink's own ADD COLUMN will find the name taken.
        cursor.execute(f"ALTER TABLE {case.target.sql} ADD COLUMN x VARCHAR(3)")
    case.sql(
        "s1",
        f"ALTER TABLE {case.database}.t_1 ADD COLUMN x INT",
        f"INSERT INTO {case.database}.t_1 VALUES (11, 11, 11)",
    )
    case.sql("s2", f"INSERT INTO {case.database}.t_1 VALUES (3, 3)")
    assert case.ids({1, 2, 3}) == []

    def refused() -> list[str]:
        progress = line.observer.facts().progress.get(case.target)
        states = [s.state for s in progress.open] if progress else None
        return [] if states == ["refused"] else [f"open statements: {states}"]

    assert line.poll(refused, seconds=60) == []
    assert line.poll(shown(line, case), seconds=60) == []
    with line.connect_target() as connection, connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {case.target.sql} DROP COLUMN x")
    assert case.ids({1, 2, 3, 11}) == [], "the statement is tried again and the rows follow"
