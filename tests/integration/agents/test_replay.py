"""What the agents' line wrote on a real broker, exported and folded again: byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from shardmerge.agents.replay.bundle import Bundle
from shardmerge.cli.main import main
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.pipeline import topics
from tests.recorded import altered, changed

from .line import PATIENCE_S, Line, wait_for
from .test_worker import describe, feed, statements


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture(scope="module")
def played(broker: LocalStack) -> Iterator[Line]:
    """A line whose worker was killed on the way: some records are there twice."""
    line = Line(broker, 1_000)
    play(line, seed=21)
    line.kill()
    yield line
    line.close()


def play(line: Line, seed: int) -> None:
    """A history whose worker is killed in the middle; another one has decided all of it."""
    describe(line)
    history = statements(seed, 30)
    line.start()
    feed(line, history[:15])
    line.wait_decided(line.events() - 6)
    line.kill()
    feed(line, history[15:])
    line.start()
    line.wait_decided(line.events())


def exported(line: Line) -> Path:
    output = line.directory / "incident.zip"
    output.unlink(missing_ok=True)
    found = run("export", "--pipeline", line.pipeline_file, "--output", output)
    assert found.exit_code == 0, found.output
    return output


def test_an_export_holds_the_records_byte_for_byte_and_verifies(played: Line):
    path = exported(played)
    with path.open("rb") as file:
        bundle = Bundle(file, path.name)
        for spec in topics.own_topics(played.pipeline):
            parts = bundle.partitions(spec.name)
            assert len(parts) == spec.partitions
            assert all((part.begin, part.end) == (0, part.high_watermark) for part in parts)
            found = [record for part in parts for record in bundle.records(part)]
            assert [(r.partition, r.offset, r.key, r.value) for r in found] == [
                (w.partition, w.offset, w.key, w.value) for w in played.written(spec.name)
            ]
            assert all(record.timestamp_ms > 0 for record in found)
        # Debezium's transactions leave markers: offsets that hold no record.
        (part,) = bundle.partitions(played.sources[0])
        assert 0 < part.records < part.end
    verified = run("replay", "--file", path, "--verify", "--from-sources")
    assert (verified.exit_code, verified.stdout.splitlines()[-1]) == (0, "equal"), verified.output
    shown = run("replay", "--file", path)
    assert shown.exit_code == 0
    assert "version 1: emit" in shown.stdout
    assert run("replay", "--file", path).stdout == shown.stdout


def test_a_replay_reads_kafka_as_it_reads_a_bundle(played: Line):
    path = exported(played)
    for options in (["--from-sources"], ["--verify"], ["--verify", "--from-sources"], ["--json"]):
        live = run("replay", "--pipeline", played.pipeline_file, *options)
        assert (live.exit_code, live.stdout) == (
            0,
            run("replay", "--file", path, *options).stdout,
        ), live.output


def test_a_decision_that_was_altered_is_found_and_named(played: Line):
    path = exported(played)

    def alter(record: StoredRecord) -> list[StoredRecord]:
        if record.topic != topics.ddl(played.pipeline).name or record.key != b"merged.tbl/3":
            return [record]
        headers = tuple((n, b"hold" if n == "outcome" else v) for n, v in record.headers)
        return [changed(record, headers=headers)]

    altered(path, alter)
    found = run("replay", "--file", path, "--verify")
    assert found.exit_code == 1
    assert "altered: decision merged.tbl/3\n" in found.stdout
    assert "header outcome: " in found.stdout


def test_what_operators_said_is_replayed_where_it_was_said(line: Line):
    describe(line)
    line.start()
    one, two = line.sources
    line.execute(one, "ALTER TABLE tbl00 FOO")
    line.wait_decided(line.events())
    table = "CREATE TABLE tbl00 (ID INT PRIMARY KEY, NAME VARCHAR(20), x INT)"
    for given in (["set-schema", table, "--shard", f"{one}/shop.tbl00"],
                  ["pause", "--shard", f"{two}/shop.tbl02"]):  # fmt: skip
        found = run("command", *given, "--pipeline", line.pipeline_file)
        assert found.exit_code == 0, found.output
    # Needs the schema that the command told.
    line.execute(one, "ALTER TABLE tbl00 ADD COLUMN y INT AFTER x")
    line.wait_decided(line.events() + 2)
    path = exported(line)
    verified = run("replay", "--file", path, "--verify", "--from-sources")
    assert (verified.exit_code, verified.stdout.splitlines()[-1]) == (0, "equal"), verified.output
    shown = run("replay", "--file", path).stdout
    assert f"command    pause {two}/shop.tbl02\n" in shown
    assert "+ `y` int" in shown


def test_an_open_transaction_ends_what_is_read(line: Line):
    describe(line)
    wait_for(line.readable, "the markers of the sources' commits")
    producer = Producer({"bootstrap.servers": line.servers, "transactional.id": "open"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(line.sources[1], b"not committed")
    producer.flush(PATIENCE_S)
    path = exported(line)
    with path.open("rb") as file:
        (part,) = Bundle(file, path.name).partitions(line.sources[1])
    assert (part.records, part.end, part.high_watermark) == (2, 4, 5)
    producer.abort_transaction(PATIENCE_S)


def test_a_topic_that_does_not_exist_is_named(line: Line):
    text = line.pipeline_file.read_text().replace('name = "p', 'name = "other', 1)
    other = line.directory / "other.toml"
    other.write_text(text)
    for arguments in (
        ["replay", "--pipeline", other],
        ["export", "--pipeline", other, "--output", line.directory / "none.zip"],
    ):
        found = run(*arguments)
        assert found.exit_code == 2
        assert ".schema-log does not exist at 127.0.0.1" in found.stderr
    assert not list(line.directory.glob("*none.zip*"))
