from __future__ import annotations

from collections.abc import Iterator

import pytest

from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.sources import idle_readers
from shardmerge.spark_sink.sources.idle_readers import close_readers, idle_reader

SOURCE, OTHER = Source("s1", "h", 1, "u", "p", 1), Source("s2", "h", 2, "u", "p", 2)


class Reader:
    def __init__(self, source: Source) -> None:
        self.source, self.closed = source, 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(idle_readers, "chunk_reader", Reader)
    yield
    close_readers()


def test_a_connection_is_kept_for_the_next_chunk_of_its_source() -> None:
    with idle_reader(SOURCE) as first:
        # Nobody else uses it meanwhile.
        with idle_reader(SOURCE) as second:
            assert second is not first
        with idle_reader(OTHER) as other:
            assert other is not second
    with idle_reader(SOURCE) as again:
        assert again in (first, second)


def test_a_connection_that_failed_is_closed() -> None:
    with pytest.raises(ValueError, match="gone"), idle_reader(SOURCE) as reader:
        raise ValueError("gone")
    assert isinstance(reader, Reader) and reader.closed == 1


def test_all_connections_are_closed_at_the_end() -> None:
    with idle_reader(SOURCE) as reader:
        pass
    close_readers()
    assert isinstance(reader, Reader) and reader.closed == 1
    with idle_reader(SOURCE) as later:
        assert later is not reader
