"""What is made of a server's answers; the answers of real servers are tested with them."""

from __future__ import annotations

from typing import Any

import pytest

from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Target
from shardmerge.spark_sink.validation.compared_table import compared_table
from tests.unit.spark_sink.validation.facts import S1, shard, target

KEYLESS = "CREATE TABLE t (a varchar(2000))"
SIDE = compared_table(target(KEYLESS), [shard(S1, KEYLESS)]).side
PIPELINE = Pipeline("p", Kafka("k:9092"), Connect("http://c:8083"), (), (), Target("h", 1, "u", ""))


class Answering:
    def __init__(self, *rows: tuple[Any, ...]) -> None:
        self.rows = list(rows)

    def ask(self, _: str) -> list[tuple[Any, ...]]:
        return self.rows

    def close(self) -> None:
        pass


def counted(*rows: tuple[Any, ...]) -> dict[tuple[str, ...], int]:
    servers = ServerRows(PIPELINE, lake=Answering(*rows))
    try:
        return dict(servers.digest_counts([SIDE])[0])
    finally:
        servers.close()


def test_rows_without_a_key_are_counted_by_their_digest() -> None:
    assert counted((b"12", b"2"), (b"7", b"1")) == {("12",): 2, ("7",): 1}


def test_a_row_without_a_digest_is_told_with_its_table() -> None:
    with pytest.raises(StackError, match=r"merged.*3 of its rows.*max_allowed_packet") as error:
        counted((b"12", b"2"), (None, b"3"))
    assert error.value.code == "SM-4413"
