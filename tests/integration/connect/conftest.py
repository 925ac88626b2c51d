"""Pipelines over the embedded stack, each with names of its own, and readers of their topics."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from pymysql.cursors import Cursor

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.local.install.artifacts import resolve
from shardmerge.local.servers.connect import connect_spec
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.processes import Supervisor
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from tests.one_source import pipeline_of, rest

__all__ = ["rest"]  # a fixture for the tests of this folder

CACHE = Path(__file__).resolve().parents[3] / ".local" / "cache"
_NUMBERS = itertools.count(1)
_OF_A_TASK = (
    "Found previous partition offset",
    "Skip ",
    "Stopping task",
    "Graceful stop of task",
    "restore lost connection",
    "last recorded offset",
    "Attempting to restart task",
)
"""In the worker's log: where a task began and ended, and where its reader connected again."""


@dataclass(frozen=True, slots=True)
class Play:
    """A source of its own: one database on one server, one connector."""

    pipeline: Pipeline
    database: str
    port: int

    @property
    def source(self) -> str:
        return self.pipeline.sources[0].name

    def topic(self, table: str) -> str:
        return f"{self.source}.{self.database}.{table}"

    @contextmanager
    def sql(self) -> Iterator[Callable[[str], None]]:
        """Runs statements on the source, each committed by itself."""
        with _connect(self.port) as connection, connection.cursor() as cursor:
            cursor.execute(f"USE `{self.database}`")
            yield lambda text: void(cursor.execute(text))

    def reader(self, topic: str) -> Reader:
        """A reader of a topic from its beginning; the caller closes it."""
        return Reader(self.pipeline.kafka.bootstrap_servers, topic)


class Reader:
    """Reads committed records of partition 0 of a topic in order."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._partition = TopicPartition(topic, 0, 0)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": f"read-{topic}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )
        self._consumer.assign([self._partition])
        self._errors: list[str] = []

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def next(self) -> dict[str, Any]:
        """The next record's value with its offset; fails after a bound."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if message := self._poll():
                value: dict[str, Any] = json.loads(message.value() or b"null")
                return {**value, "offset": message.offset()}
        (here,) = self._consumer.position([self._partition])
        raise AssertionError(
            f"no further record on {self._partition.topic}, which was read up to {here.offset} "
            f"and ends at {self.high_watermark()}; the consumer said {self._errors}"
        )

    def next_before(self, end: int) -> dict[str, Any] | None:
        """The next record's value, with its offset, below an end offset; None without one."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if message := self._poll():
                value: dict[str, Any] = json.loads(message.value() or b"null")
                return {**value, "offset": message.offset()}
            (here,) = self._consumer.position([self._partition])
            if here.offset >= end:
                return None
        raise AssertionError(f"{self._partition.topic} was not read up to {end}")

    def _poll(self) -> Message | None:
        message = self._consumer.poll(0.2)
        if message is None or (error := message.error()) is None:
            return message
        # Such as that the topic is not there yet.
        self._errors.append(str(error))
        return None

    def ids(self, count: int) -> list[int]:
        """The column id of the next rows."""
        return [self.next()["after"]["id"] for _ in range(count)]

    def high_watermark(self) -> int:
        """End offset, read uncommitted."""
        end: int = self._consumer.get_watermark_offsets(self._partition, timeout=30)[1]
        return end


def void(_: object) -> None:
    """Forget a result."""


def _connect(port: int) -> pymysql.Connection[Cursor]:
    return pymysql.connect(
        host="127.0.0.1", port=port, user=USER, password=PASSWORD, autocommit=True
    )


@contextmanager
def other_worker(
    stack: LocalStack, directory: Path, name: str, exactly_once: str = "enabled"
) -> Iterator[ConnectRest]:
    """A worker with Debezium's plugins alone, of another cluster: own group and topics.

    Args:
        stack: Has Kafka.
        directory: For its files.
        name: Of its group and topics.
        exactly_once: Whether it supports sources that deliver exactly once.
    """
    port = Ports.free().connect
    spec = connect_spec(resolve(CACHE), directory / "worker", port, stack.bootstrap_servers)
    properties = directory / "worker" / "worker.properties"
    text = properties.read_text().replace("support=enabled", f"support={exactly_once}")
    text = text.replace("shardmerge-connect", name).replace("=connect-", f"={name}-")
    properties.write_text(text)
    supervisor = Supervisor(directory)
    rest = ConnectRest(f"http://127.0.0.1:{port}")
    try:
        supervisor.spawn(spec)
        supervisor.wait_healthy(spec)
        yield rest
    finally:
        rest.close()
        supervisor.stop("connect")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What Connect says, beside each test that fails."""
    report = yield
    stack = getattr(item, "funcargs", {}).get("stack")
    if report.failed and call.when == "call" and isinstance(stack, LocalStack):
        report.sections.append(("Kafka Connect", _said_by_connect(stack)))
    return report


def _said_by_connect(stack: LocalStack) -> str:
    """The state of each connector, where its tasks began, and the last lines of the log."""
    with closing(ConnectRest(stack.connect_url, patience_s=0.0)) as asked:
        try:
            states = [f"{name}: {asked.status(name)}" for name in asked.connectors()]
        except StackError as error:
            states = [str(error)]
    log = (stack.directory / "logs" / "connect.log").read_text(encoding="utf-8").splitlines()
    begun = [line for line in log[:-60] if any(text in line for text in _OF_A_TASK)]
    return "\n".join(states + begun[-60:] + log[-60:])


@pytest.fixture
def play(stack: LocalStack) -> Play:
    """A pipeline with one source, whose database is empty."""
    return make_play(stack, stack.ports.source1)


def make_play(stack: LocalStack, port: int, flavour: str = "mysql", version: str = "") -> Play:
    """A pipeline with one source on a server of the stack, whose database is empty."""
    number = next(_NUMBERS)
    database = f"play{number}"
    with _connect(port) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE `{database}`")
    text = pipeline_of(
        stack,
        f"it{number}",
        source=f"s{number}",
        port=port,
        server_id=5000 + number,
        database=database,
        target_port=stack.ports.target,
        flavour=flavour,
        version=version,
    )
    return Play(parse_pipeline(text, {}), database, port)
