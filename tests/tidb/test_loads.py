"""First loads of a MySQL's shard into a TiDB: in chunks, and as of one position."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shardmerge.spark_sink.loading.load_state import LoadKind
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress
from tests.integration.mysql.compared_line import pipeline
from tests.integration.mysql.conftest import source_server
from tests.integration.mysql.load_line import KEYED, KEYLESS, UNIQUE, LoadLine
from tests.integration.mysql.test_chunk_loads import a_snapshot_comes, all_chunks_come


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with source_server("mysql80", tmp_path_factory.getbasetemp(), 913) as number:
        yield number


def test_chunks_come_into_a_tidb(port: int, tidb: MySqlAddress) -> None:
    line = LoadLine(pipeline(port, tidb.port), tidb, KEYED)
    all_chunks_come(line)
    line.close()


@pytest.mark.parametrize("definition", [KEYLESS, UNIQUE], ids=["keyless", "unique"])
def test_a_snapshot_comes_into_a_tidb(port: int, tidb: MySqlAddress, definition: str) -> None:
    line = LoadLine(pipeline(port, tidb.port), tidb, definition, LoadKind.SNAPSHOT)
    a_snapshot_comes(line)
    line.close()
