"""The first pipeline file: what is guessed, what is asked, and that it can be read."""

from __future__ import annotations

import pytest

from shardmerge.cli.deployment.first_file import (
    Address,
    FirstFile,
    Seen,
    first_file,
    guessed_routes,
)
from shardmerge.schemas.model.server_facts import server_facts
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline

ONE, TWO = Address("s1", "debezium", "db1"), Address("s-2", "debezium", "db2", 3307)
TARGET = Address("target", "shardmerge", "merged")
UNASKED = Seen(None, why="the environment has no S1_PASSWORD")
PASSWORDS = {"S1_PASSWORD": "a", "S_2_PASSWORD": "b", "TARGET_PASSWORD": "c"}


def seen(version: str, *tables: tuple[str, str], **variables: str) -> Seen:
    return Seen(server_facts(version, variables, {}), tables)


def read(text: str) -> Pipeline:
    return parse_pipeline(text, PASSWORDS)


def written(one: Seen, two: Seen, target: Seen, kind: str = "mysql") -> str:
    sources = ((ONE, one), (TWO, two))
    return first_file(
        FirstFile("shop", "kafka:9092", "http://c:8083", sources, (TARGET, target), kind)
    )


def test_what_servers_told_stands_in_the_file() -> None:
    text = written(
        seen(
            "8.0.36-log", ("app", "t_1"), ("app", "t_2"), ("app", "users"),
            sql_mode="ANSI_QUOTES,STRICT_TRANS_TABLES", character_set_server="latin1",
        ),
        seen("10.11.6-MariaDB", ("app", "t_3"), character_set_server="utf8mb4"),
        seen("8.4.2"),
    )  # fmt: skip

    found = read(text)

    one, two = found.sources
    assert (one.flavour, one.version, one.sql_mode, one.charset) == (
        "mysql", "8.0", "ANSI_QUOTES", "latin1",
    )  # fmt: skip
    assert (two.flavour, two.version, two.port) == ("mariadb", "10.11", 3307)
    assert one.databases == two.databases == "app"
    assert one.server_id != two.server_id
    assert (found.target.kind, found.target.version) == ("mysql", "8.4.2")
    (route,) = found.routes
    assert (route.database, route.table, route.target_database, route.target_table) == (
        "app", r"t_\d+", "merged", "t",
    )  # fmt: skip
    assert "# 3: s-2/app.t_3, s1/app.t_1, s1/app.t_2" in text
    assert '# target = "merged.users"' in text, "one table alone is told, but not merged"


def test_every_mode_that_changes_how_statements_are_read_is_written() -> None:
    modes = (
        "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI,"
        "HIGH_NOT_PRECEDENCE,STRICT_TRANS_TABLES"
    )
    text = written(seen("8.0.36", sql_mode=modes), UNASKED, UNASKED)
    assert set(read(text).sources[0].sql_mode.split(",")) == {
        "REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "HIGH_NOT_PRECEDENCE",
    }  # fmt: skip


def test_a_file_for_servers_that_were_not_asked_is_read_as_well_and_says_so() -> None:
    text = written(UNASKED, UNASKED, UNASKED, "mariadb")
    found = read(text)
    assert found.target.kind == "mariadb"
    assert text.count("was not read: the environment has no S1_PASSWORD.") == 3
    assert "No server was read" in text


def test_no_password_stands_in_the_file() -> None:
    text = written(UNASKED, UNASKED, UNASKED)
    assert [line for line in text.splitlines() if line.startswith("password")] == [
        'password = "${S1_PASSWORD}"',
        'password = "${S_2_PASSWORD}"',
        'password = "${TARGET_PASSWORD}"',
    ]


@pytest.mark.parametrize(
    ("tables", "routes"),
    [
        ({"s1": [("app", "t")]}, [("app", "t", "merged.t", 1)]),
        ({"s1": [("app1", "t"), ("app2", "t")]}, [(r"app\d+", "t", "merged.t", 2)]),
        (
            {"s1": [("app", "t_1"), ("app", "t_2")], "s2": [("app", "t_3")]},
            [("app", r"t_\d+", "merged.t", 3)],
        ),
        (
            {"s1": [("app", "t1"), ("app", "t2"), ("log", "t1")]},
            [("app", r"t\d+", "merged_app.t", 2), ("log", r"t\d+", "merged_log.t", 1)],
        ),
        ({"s1": [("a.b", "x-y")]}, [(r"a\.b", r"x\-y", "merged.x-y", 1)]),
        ({"s1": [("app", "x.y1")]}, [("app", r"x\.y\d+", "merged.x_y", 1)]),
        ({"s1": [("app", "2024")]}, [("app", r"\d+", "merged.t", 1)]),
        ({}, []),
    ],
)
def test_routes_are_guessed_from_names(
    tables: dict[str, list[tuple[str, str]]], routes: list[tuple[str, str, str, int]]
) -> None:
    found = guessed_routes(tables)
    assert [(r.database, r.table, r.target, len(r.shards)) for r in found] == routes


def test_tables_that_stand_alone_are_all_routes_where_there_are_no_others() -> None:
    alone = seen("8.0.36", ("app", "users"), ("app", "orders"))
    found = read(written(alone, UNASKED, UNASKED))
    assert [route.table for route in found.routes] == ["orders", "users"]


@pytest.mark.parametrize(
    ("version", "real", "expected"),
    [
        ("5.7.44-log", "ON", "ON"),
        ("5.7.44-log", "OFF", ""),
        ("8.0.36", "ON", ""),
        ("8.0.36", "OFF", "OFF"),
    ],
)
def test_a_server_that_makes_timestamps_otherwise_than_its_version_is_told_so(
    version: str, real: str, expected: str
) -> None:
    one = seen(version, ("app", "t_1"), explicit_defaults_for_timestamp=real)
    found = read(written(one, seen("8.0.36", ("app", "t_2")), seen("8.0.36")))
    assert [s.explicit_defaults_for_timestamp for s in found.sources] == [expected, ""]


def test_a_server_that_compares_names_without_case_is_told_so() -> None:
    one = seen("8.0.36", ("app", "t_1"), lower_case_table_names="1")
    found = read(written(one, seen("8.0.36", ("app", "t_2")), seen("8.0.36")))
    assert [source.lower_case_table_names for source in found.sources] == [1, 0]
