"""DDL that stopped Debezium's default grammar, or came cut from it, on the real line."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.source_config import schema_history_topic
from shardmerge.connectors.deploy import deploy_connectors
from tests.breadth import further

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
    "ALTER TABLE t ADD word VARCHARACTER(9) ASCII, ADD bytes CHAR(4) /* BYTE */ BYTE NULL",
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


@further
def test_values_arrive_whatever_words_their_columns_definitions_have(
    play: Play, rest: ConnectRest
) -> None:
    """A restarted connector has the definitions from its schema history."""
    with play.sql() as run:
        run("CREATE TABLE t (id INT PRIMARY KEY, d INT)")
        deploy_connectors(play.pipeline, rest)
        wait_for_snapshot(play)
        run("ALTER TABLE t ADD n INT CHECK (n IS NOT NULL OR d IS NULL), ADD e ENUM('a') BINARY")
        run("ALTER TABLE t ADD f FLOAT SIGNED, ADD b CHARACTER VARYING(9) CHARACTER SET binary")
        run("ALTER TABLE t ADD v VARCHARACTER(9) ASCII DEFAULT 'ä', ADD y TEXT(9) BYTE")
        run("ALTER TABLE t ADD p CHAR(4) BYTE")
        run("INSERT INTO t (id, e, f, b, y, p) VALUES (1, 'a', 0.5, 0xff0061, 0xff0061, 0xff)")
        with play.reader(play.topic("t")) as rows:
            first = rows.next()["after"]
            name = connector_name(play.pipeline, play.pipeline.sources[0])
            rest.restart(name)
            rest.wait_running(name, 180)
            run("INSERT INTO t (id, e, f, b, y, p) VALUES (2, 'a', 0.5, 0xff0061, 0xff0061, 0xff)")
            second = rows.next()["after"]
    bytes_of = {"b": "/wBh", "y": "/wBh", "p": "/wAAAA=="}
    wanted = {"id": 1, "d": None, "n": None, "e": "a", "f": 0.5, "v": "ä", **bytes_of}
    assert (first, second) == (wanted, {**wanted, "id": 2})


@further
def test_a_restarted_connector_corrects_what_an_earlier_jar_made_it_learn(
    play: Play, rest: ConnectRest
) -> None:
    """The schema history says of columns what Debezium without the jar makes of them."""
    with play.sql() as run, play.reader(play.topic("t")) as rows:
        run("CREATE TABLE t (id INT PRIMARY KEY, d INT)")
        deploy_connectors(play.pipeline, rest)
        wait_for_snapshot(play)
        run("ALTER TABLE t ADD n INT CHECK (n IS NOT NULL OR d IS NULL), ADD e ENUM('a') BINARY")
        run("ALTER TABLE t ADD later INT")
        run("INSERT INTO t (id, e) VALUES (1, 'a')")
        assert rows.next()["after"]["id"] == 1
        name = connector_name(play.pipeline, play.pipeline.sources[0])
        rest.stop(name)
        assert _made_wrong(play) == ["n", "e", "n", "e"]
        rest.resume(name)
        rest.wait_running(name, 180)
        run("INSERT INTO t (id, e) VALUES (2, 'a')")
        assert rows.next()["after"] == {"id": 2, "d": None, "n": None, "e": "a", "later": None}


def _made_wrong(play: Play) -> list[str]:
    """Write a schema history anew, as it was with an earlier jar; the columns that are wrong."""
    topic = schema_history_topic(play.pipeline, play.pipeline.sources[0])
    servers = {"bootstrap.servers": play.pipeline.kafka.bootstrap_servers}
    records: list[dict[str, Any]] = []
    with play.reader(topic) as history:
        end = history.high_watermark()
        while (record := history.next_before(end)) is not None:
            records.append(record)
    wrong = {"n": {"optional": False}, "e": {"typeName": "ENUM BINARY", "enumValues": []}}
    made: list[str] = []
    producer = Producer(servers)
    for record in records:
        for change in record.get("tableChanges", ()):
            for column in change.get("table", {}).get("columns", ()):
                if column["name"] in wrong:
                    column.update(wrong[column["name"]])
                    made.append(column["name"])
        del record["offset"]
        producer.produce(topic, json.dumps(record).encode())
    assert producer.flush(30) == 0
    admin = AdminClient(servers)
    for deleted in admin.delete_records([TopicPartition(topic, 0, end)]).values():
        deleted.result(30)
    return made
