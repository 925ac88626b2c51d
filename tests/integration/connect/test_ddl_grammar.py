"""DDL that stopped Debezium's default grammar, or came cut from it, on the real line."""

from __future__ import annotations

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.deploy import deploy_connectors

from .conftest import Play
from .test_connectors import wait_for_snapshot

STATEMENTS = (
    "CREATE TABLE named (id INT PRIMARY KEY, url VARCHAR(9), manual INT)",
    "ALTER TABLE t ADD COLUMN url VARCHAR(9)",
    "ALTER TABLE t CHANGE url auto VARCHAR(10), ADD parallel INT",
    "ALTER TABLE t ADD flags BIT(3)",
    "ALTER TABLE t ALTER COLUMN flags SET DEFAULT b'101'",
    "ALTER TABLE t ALTER COLUMN parallel SET DEFAULT NULL",
    "ALTER DATABASE CHARACTER SET utf8mb4",
    "CREATE UNIQUE INDEX pair ON keyless (a, b)",
)


def test_ddl_that_debeziums_default_grammar_refuses_or_cuts_arrives_whole(
    play: Play, rest: ConnectRest
) -> None:
    with play.sql() as run:
        run("CREATE TABLE t (id INT PRIMARY KEY)")
        run("CREATE TABLE keyless (a INT NOT NULL, b INT NOT NULL)")
        deploy_connectors(play.pipeline, rest)
        wait_for_snapshot(play)
        for number, sql in enumerate(STATEMENTS):
            run(sql)
            run(f"INSERT INTO t (id) VALUES ({number})")

    with play.reader(play.topic("t")) as rows, play.reader(play.source) as ddl:
        assert rows.ids(len(STATEMENTS)) == list(range(len(STATEMENTS)))
        arrived: list[str] = []
        while len(arrived) < len(STATEMENTS):
            change = ddl.next()
            arrived += [] if change["source"]["snapshot"] == "true" else [change["ddl"]]
    status = rest.status(connector_name(play.pipeline, play.pipeline.sources[0]))
    assert arrived == list(STATEMENTS)
    assert status is not None
    assert status.is_running, status.reason()
