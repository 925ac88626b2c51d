"""A coordinator and a sink as readings of whole tables need them, for a source of its own."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pymysql
from confluent_kafka import Producer

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.failpoints import nowhere
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.connectors.repair.source_repair import repairs_of
from shardmerge.connectors.whole.reading_watch import ReadingWatch
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.records.codec import decode, encode
from shardmerge.schemas.records.decisions import Decision, Fixup, FixupKind, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.reloads import Reload, reloads_in
from shardmerge.schemas.records.schema_changes import ChangeId

from .conftest import Play

TARGET = TargetTable("merged", "t")
TIMEOUT_S = 180
Row = tuple[Any, ...]


class Killed(BaseException):
    """The process is gone at a failpoint."""


class WholeLine:
    """Decides for a source, and applies its rows, in the test's own hand."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._servers = play.pipeline.kafka.bootstrap_servers
        self._producer = Producer({"bootstrap.servers": self._servers})
        self._version = 0
        self._decided: set[int] = set()

    def shard(self, table: str) -> ShardId:
        return ShardId(self._play.source, self._play.database, table)

    def ask(self, *tables: str) -> None:
        """Decide that the tables must be read as a whole."""
        shards = [self.shard(table) for table in tables]
        self._send(
            ChangeId("elsewhere", self._version),
            shards[0],
            fixups=tuple(Fixup(s, FixupKind.WHOLE, (), "no key") for s in shards),
        )

    def decide(self) -> None:
        """Decide every schema change of the source, which concern no shard."""
        for offset in {r.offset for r in self._records(self._play.source)} - self._decided:
            self._decided.add(offset)
            change = ChangeId(self._play.source, offset)
            decision = Decision(change, None, 0, None, BEGINNING, Outcome.IGNORED)
            self._put(f"ignored/{change}", decision)

    def commands(self) -> list[tuple[int, tuple[Reload, ...]]]:
        """What was told, with the commands' offsets."""
        found = []
        for record in self._records(topics.commands(self._play.pipeline).name):
            said = decode(record.value or b"")
            assert isinstance(said, OperatorCommand)
            assert (said.kind, said.target, said.by) == (CommandKind.RELOADED, TARGET, "watchdog")
            found.append((record.offset, reloads_in(said.argument)))
        return found

    def answer(self, offset: int, reloads: Sequence[Reload]) -> None:
        """Answer a command: with its reloads, or, without, by refusing it."""
        outcome = Outcome.NOOP if reloads else Outcome.REFUSED
        source = topics.commands(self._play.pipeline).name
        self._send(
            ChangeId(source, offset), None, outcome=outcome, reloads=tuple(reloads),
            reason="" if reloads else "the table was changed",
        )  # fmt: skip

    def rows(self, reload: Reload) -> Counter[Row]:
        """The table's rows as whoever obeys the reload has them, up to the row topic's end."""
        found: Counter[Row] = Counter()
        for value in self.events(reload.shard.table):
            place = position(value)
            if place < reload.position:
                continue
            if value["op"] == "r":
                # None but the reading's.
                if place != reload.position or value["ts_ms"] < reload.began_ms:
                    raise AssertionError(f"a row of another reading at {place}")
                found[image(value["after"])] += 1
                continue
            assert place > reload.position, "the binlog has nothing at the reading's own place"
            if value["before"] is not None:
                found[image(value["before"])] -= 1
            if value["after"] is not None:
                found[image(value["after"])] += 1
        assert min(found.values(), default=0) >= 0, "a row went that had not come"
        return +found

    def events(self, table: str) -> Iterator[dict[str, Any]]:
        """What the row topic of a table holds."""
        for record in self._records(self._play.topic(table)):
            yield json.loads(record.value or b"")

    def await_row(self, table: str, row: Row) -> None:
        """Wait until the row topic has a row of the binlog."""
        deadline = time.monotonic() + TIMEOUT_S
        with self._play.reader(self._play.topic(table)) as rows:
            while (value := rows.next())["op"] != "c" or image(value["after"]) != row:
                assert time.monotonic() < deadline, f"{row} never came"

    def table(self, table: str) -> Counter[Row]:
        """The table's rows as the server has them."""
        with (
            pymysql.connect(
                host="127.0.0.1", port=self._play.port, user=USER, password=PASSWORD
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(f"SELECT * FROM `{self._play.database}`.`{table}`")
            return Counter(cursor.fetchall())

    def _records(self, topic: str) -> Iterator[Any]:
        with TopicReader(Kafka(self._servers)) as reader:
            for extent in reader.extents((topic,)):
                yield from (r for r in reader.records(extent) if r.value is not None)

    def _send(
        self, change: ChangeId, shard: ShardId | None, outcome: Outcome = Outcome.EMIT, **more: Any
    ) -> None:
        self._version += 1
        decision = Decision(change, TARGET, self._version, shard, BEGINNING, outcome, **more)
        self._put(f"{TARGET}/{self._version}", decision)

    def _put(self, key: str, decision: Decision) -> None:
        topic = topics.ddl(self._play.pipeline).name
        self._producer.produce(topic, encode(decision), key.encode())
        assert self._producer.flush(30) == 0


def position(value: dict[str, Any]) -> SourcePosition:
    source = value["source"]
    return SourcePosition(0, source["file"], source["pos"], source["row"] or 0)


def image(row: dict[str, Any]) -> Row:
    return tuple(row.values())


@contextmanager
def watch_of(
    play: Play, rest: ConnectRest, passed: Callable[[str], None] = nowhere
) -> Iterator[ReadingWatch]:
    """A watch with little patience, of a process of its own."""
    repairs = repairs_of(play.pipeline, rest)
    try:
        watch = ReadingWatch(play.pipeline, rest, repairs, shortest_s=1.0, passed=passed)
        with closing(watch):
            yield watch
    finally:
        for repair in repairs.values():
            repair.close()


def look_until(watch: ReadingWatch, is_so: Callable[[], bool]) -> None:
    """Let a watch look until something is so."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        watch.look(time.monotonic())
        if is_so():
            return
        assert time.monotonic() < deadline
        time.sleep(0.3)


def dies_at(place: str) -> Callable[[str], None]:
    """A failpoint that ends the process there, once."""

    def passed(here: str) -> None:
        if here == place:
            raise Killed(place)

    return passed
