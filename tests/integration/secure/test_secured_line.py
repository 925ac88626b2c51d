"""The whole line with TLS, users and least rights everywhere, and where its passwords are not."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pymysql
import pytest
import requests
from click.testing import CliRunner
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from shardmerge.cli.main import main
from shardmerge.connectors.access import mysql
from shardmerge.connectors.access.kafka import admin_client, check_admitted, consumer, producer
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.signals import snapshot_signal
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.kafka_client import parse_client
from shardmerge.schemas.pipeline.settings import Kafka, Pipeline
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.retention_watch import RetentionWatch
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.breadth import further
from tests.running import Running, wait_for, with_tests

from . import agents_client
from .accounts import CANARY, WRONG
from .conftest import Played
from .process_lists import ProcessLists
from .second_worker import second_worker
from .secured_line import SecuredLine


def test_the_demo_ends_equal_over_secure_connections(played: Played) -> None:
    assert played.report.good, played.report


def test_check_finds_no_fault_and_no_password_that_lies_readable(played: Played) -> None:
    done = CliRunner().invoke(main, ["check", "--pipeline", str(played.secured.line.pipeline_path)])
    assert "FAULT" not in done.output, done.output
    assert "readable" not in done.output, done.output


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["explain", "s1/app.tbl00"],
        ["decisions"],
        ["schema", "s1/app.tbl00"],
        ["conflicts"],
        ["connect", "status"],
    ],
    ids=" ".join,
)
def test_a_command_reads_a_secured_pipeline(played: Played, words: list[str]) -> None:
    path = str(played.secured.line.pipeline_path)
    done = CliRunner().invoke(main, [*words, "--pipeline", path, "--json"])
    assert done.exit_code == 0, done.output
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told or words == ["conflicts"]
    assert "error" not in done.output.lower().replace('"error": ""', ""), done.output
    assert CANARY not in done.output


def test_the_sinks_user_may_ask_how_long_kafka_keeps_rows(played: Played) -> None:
    secured = played.secured
    access = Kafka(secured.line.pipeline.kafka.bootstrap_servers, client=secured.client("sink"))
    place = (Partition("s1.app.tbl00", 0), 0)
    watch = RetentionWatch(access, lambda: {("s1", "merged.tbl"): [place]}, lambda _: None)
    assert watch.look() == {}  # the local broker keeps rows for ever


def test_no_log_holds_a_password(played: Played) -> None:
    logs = sorted((played.secured.line.directory / "logs").glob("*.log"))
    assert {"agents", "connect", "kafka", "sink", "target"} <= {log.stem for log in logs}
    assert [log.name for log in logs if CANARY.encode() in log.read_bytes()] == []


def test_no_topic_holds_a_password(played: Played) -> None:
    """Neither do Connect's own topics, where the connectors' configurations are."""
    topics, words = set(), set()
    for topic, record in _records(played.secured.owner()):
        topics.add(topic)
        if CANARY.encode() in record:
            words.add(topic)
    assert {"connect-configs", "connect-offsets", "local.ddl", "s1", "s1.app.tbl00"} <= topics
    assert words == set()


def test_a_connectors_configuration_refers_to_passwords(played: Played) -> None:
    pipeline = played.secured.line.pipeline
    rest = ConnectRest.of(pipeline.connect)
    config = rest.config(connector_name(pipeline, pipeline.sources[0])) or {}
    rest.close()
    assert config["database.password"] == "${env:SOURCE_PASSWORD}"
    assert "${env:KAFKA_PASSWORD}" in config["signal.consumer.sasl.jaas.config"]
    assert CANARY not in str(config)


def test_no_page_and_no_answer_of_the_agents_holds_a_password(played: Played) -> None:
    line = played.secured.line
    for path in (
        "/",
        "/metrics",
        "/target/merged.tbl",
        "/target/merged.tbl/holds",
        "/target/merged.tbl/commands",
        "/plan",
        "/api/status",
        "/api/target/merged.tbl",
        "/api/target/merged.tbl/holds",
        "/healthz",
    ):
        answer = requests.get(f"{line.web_url}{path}", timeout=10)
        assert answer.ok, path
        assert CANARY not in answer.text, path
    form = {"target": "merged.tbl", "sql": "ALTER TABLE {table} ADD COLUMN planned INT"}
    planned = requests.post(f"{line.web_url}/plan", data=form, timeout=30)
    assert "ADD COLUMN `planned` int" in planned.text, planned.text
    assert CANARY not in planned.text


def test_no_command_line_held_a_password(played: Played) -> None:
    assert played.told == frozenset()


def test_a_password_on_a_command_line_would_be_found() -> None:
    lists = ProcessLists(CANARY)
    code = "import sys; print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, CANARY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        # Just after its start a process has an empty command line.
        assert process.stdout is not None
        process.stdout.readline()
        lists.look()
    assert any(CANARY in line for line in lists.found)


def test_no_bundle_holds_a_password(played: Played, tmp_path: Path) -> None:
    bundle, path = tmp_path / "bundle", str(played.secured.line.pipeline_path)
    done = CliRunner().invoke(main, ["export", "--pipeline", path, "--output", str(bundle)])
    assert done.exit_code == 0, done.output
    with zipfile.ZipFile(bundle) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert any(b"[[sources]]" in part for part in parts.values())
    assert [name for name, part in parts.items() if CANARY.encode() in part] == []
    assert [
        name for name, part in parts.items() if str(played.secured.folder).encode() in part
    ] == []


def test_the_server_takes_no_connection_that_is_not_encrypted(played: Played) -> None:
    target = played.secured.line.pipeline.target
    with pytest.raises(pymysql.OperationalError, match="insecure transport"):
        pymysql.connect(
            host=target.host,
            port=target.port,
            user="shardmerge",
            password="shardmerge",
            ssl_disabled=True,
        )


def test_rows_are_loaded_over_an_encrypted_connection(played: Played) -> None:
    target = played.secured.line.pipeline.target
    address = MySqlAddress.of(target)
    session = MySqlSession(address)
    try:
        session.execute("CREATE TABLE merged.loaded (a INT PRIMARY KEY)")
        load = "LOAD DATA LOCAL INFILE '{path}' INTO TABLE merged.loaded (a)"
        data = b"".join(b"%d\n" % number for number in range(200_000))
        assert session.load(load, data) == 200_000
        [(_, cipher)] = session.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        session.execute("DROP TABLE merged.loaded")
    finally:
        session.close()
    assert cipher


def test_a_user_of_mysql_has_no_more_rights_than_it_needs(played: Played) -> None:
    source = played.secured.line.pipeline.sources[0]
    with mysql.connect(source) as connection, connection.cursor() as cursor:
        for statement in ("DELETE FROM app.tbl00", "CREATE TABLE app.x (a INT)"):
            with pytest.raises(pymysql.OperationalError, match="denied"):
                cursor.execute(statement)


@pytest.mark.parametrize(
    ("user", "topic"), [("sink", "s1.app.tbl00"), ("agents", "s1"), ("connect", "local.ddl")]
)
def test_a_user_of_kafka_has_no_more_rights_than_it_needs(
    played: Played, user: str, topic: str
) -> None:
    secured = played.secured
    access = Kafka(secured.line.pipeline.kafka.bootstrap_servers, client=secured.client(user))
    errors: list[KafkaError | None] = []
    client = producer(access, {"log_level": 0})
    client.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    client.flush(60)
    assert [error and error.code() for error in errors] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]


def test_a_certificate_is_enough_for_each_of_our_clients(played: Played) -> None:
    """Connect's own clients use mutual TLS in this line all the time."""
    access = played.secured.owner()
    assert "local.ddl" in admin_client(access).list_topics(timeout=10).topics
    assert "local.ddl" in asyncio.run(agents_client.topics(access))


def test_plain_is_enough_for_each_of_our_clients(played: Played) -> None:
    secured = played.secured
    plain = dict(secured.client("operator")) | {"sasl.mechanism": "PLAIN"}
    access = Kafka(secured.line.pipeline.kafka.bootstrap_servers, client=parse_client(plain))
    assert "local.ddl" in admin_client(access).list_topics(timeout=10).topics
    assert "local.ddl" in asyncio.run(agents_client.topics(access))


def test_a_token_is_enough_for_each_of_our_clients(played: Played) -> None:
    access = played.secured.with_token("operator")
    assert "local.ddl" in admin_client(access).list_topics(timeout=10).topics
    assert "local.ddl" in asyncio.run(agents_client.topics(access))


@further
def test_tokens_and_plain_are_enough_for_java_too(played: Played, tmp_path: Path) -> None:
    """Connect's own clients with tokens; Debezium's for history and signals with each."""
    secured = played.secured
    with second_worker(secured, tmp_path / "second") as worker:
        for pipeline, module in (
            (worker.by_token(), "OAuthBearerLoginModule"),
            (worker.by_plain(), "PlainLoginModule"),
        ):
            config = _carried_rows(secured, pipeline, tmp_path / f"{module}.toml")
            history = "schema.history.internal"
            for name in (f"{history}.producer", f"{history}.consumer", "signal.consumer"):
                assert module in config[f"{name}.sasl.jaas.config"], name
            assert CANARY not in str(config)
        assert CANARY not in worker.log.read_text()


def test_a_client_with_a_wrong_secret_gets_no_token_and_says_so(
    played: Played, tmp_path: Path
) -> None:
    access = played.secured.with_token("operator", WRONG)
    with pytest.raises(StackError) as refused:
        check_admitted(access, 20)
    assert refused.value.code == "SM-4112"
    path = tmp_path / "pipeline.toml"
    path.write_text(pipeline_text(replace(played.secured.line.pipeline, kafka=access)))
    client = [sys.executable, "-m", agents_client.__name__, str(path)]
    done = subprocess.run(
        client, capture_output=True, text=True, env=with_tests(), timeout=100, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    # aiokafka tries again after each of these errors, so it tells the reason in its log only.
    assert "Unable to bootstrap" in done.stderr
    for said in (str(refused.value), done.stderr):
        assert "SM-4112: " in said
        assert "gives no token" in said
        assert "sasl.oauthbearer.client" in said
        assert CANARY not in said


@pytest.mark.timeout(600)
def test_run_carries_ddl_and_rows_over_secure_connections_and_ends_when_told(
    played: Played, tmp_path: Path
) -> None:
    """The last test here: agents and sink of the line stay stopped behind it."""
    line = played.secured.line
    line.hand_over()
    running = Running(line.pipeline_path, tmp_path / "run", played.secured.environment("runner"))

    def changed() -> bool:
        with line.connect_target() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW COLUMNS FROM merged.tbl LIKE 'by_run'")
            if not cursor.fetchall():
                return False
            cursor.execute("SELECT COUNT(*) FROM merged.tbl WHERE by_run = 7")
            return bool(cursor.fetchall()[0][0])

    try:
        wait_for(lambda: all(map(running.pid, ("watchdog", "agents", "sink"))), "parts")
        with line.connect("s1") as connection, connection.cursor() as cursor:
            cursor.execute("ALTER TABLE app.tbl00 ADD COLUMN by_run INT")
            assert cursor.execute("UPDATE app.tbl00 SET by_run = 7") > 0
        wait_for(changed, "row behind DDL")
    finally:
        running.process.terminate()
        ended = running.process.wait(timeout=120)
        text = running.text()
        running.log.close()
        print(text[-8000:])
    assert (ended, running.left()) == (0, [])
    stops = [each.split()[0] for each in text.split("part_stopped part=")[1:]]
    assert stops == ["sink", "agents", "watchdog"]
    assert "part_ended" not in text, "no part died on the way"
    assert CANARY not in text


def _records(access: Kafka) -> Iterator[tuple[str, bytes]]:
    """Key, value and headers of every record that Kafka has, its internal ones included."""
    settings = {
        "group.id": "search",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "isolation.level": "read_uncommitted",
    }
    client = consumer(access, settings)
    try:
        known = client.list_topics(timeout=10).topics
        places = [TopicPartition(t, p, 0) for t, found in known.items() for p in found.partitions]
        client.assign(places)
        left = len(places)
        while left:
            message = client.poll(20)
            assert message is not None, f"{left} partitions are not read"
            if (error := message.error()) is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                left -= 1
                continue
            headers = str(message.headers() or "").encode()
            yield message.topic() or "", (message.key() or b"") + (message.value() or b"") + headers
    finally:
        client.close()


def _carried_rows(secured: SecuredLine, pipeline: Pipeline, path: Path) -> Mapping[str, str]:
    """Apply a pipeline's connector, see its snapshot and what a signal asks for; its config."""
    path.write_text(pipeline_text(pipeline))
    done = CliRunner().invoke(main, ["connect", "apply", "--pipeline", str(path)])
    assert done.exit_code == 0, done.output
    [source] = pipeline.sources
    rest = ConnectRest.of(pipeline.connect)
    config = rest.config(connector_name(pipeline, source)) or {}
    rest.close()
    table = ShardId(source.name, "app", "tbl00")
    with mysql.connect(source) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM app.tbl00")
        ((rows,),) = cursor.fetchall()
    topic = f"{source.name}.{table.database}.{table.table}"
    wait_for(lambda: _end(pipeline.kafka, topic) >= rows, "rows of the snapshot")
    with secured.line.connect("s1") as connection, connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE app.tbl00 COMMENT = '{source.name}'")
    before = _end(pipeline.kafka, topic)
    key, value = snapshot_signal(source.name, table)
    client = producer(pipeline.kafka, {})
    client.produce("local.signals", value, key)
    client.flush(30)
    wait_for(lambda: _end(pipeline.kafka, topic) >= before + rows, "rows that a signal asked for")
    return config


def _end(access: Kafka, topic: str) -> int:
    """Records that a topic has, and the marks of transactions; 0 when there is no topic."""
    admin = admin_client(access)
    known = admin.list_topics(timeout=10).topics.get(topic)
    if known is None or known.error is not None:
        return 0
    places = {TopicPartition(topic, p): OffsetSpec.latest() for p in known.partitions}
    return sum(f.result().offset for f in admin.list_offsets(places).values())
