"""Connections to sources that a process keeps for the chunks that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from shardmerge.schemas.pipeline.settings import Source

from .replica_reader import chunk_reader
from .table_reader import TableReader

_idle: dict[Source, list[TableReader]] = {}
"""The idle connections of this process. They outlive a chunk: Spark keeps its Python workers."""
_keeping = Lock()


@contextmanager
def idle_reader(source: Source) -> Iterator[TableReader]:
    """A connection to a source that no one else in this process uses meanwhile."""
    with _keeping:
        idle = _idle.setdefault(source, [])
        reader = idle.pop() if idle else chunk_reader(source)
    try:
        yield reader
    except Exception:
        reader.close()
        raise
    finally:
        with _keeping:
            idle.append(reader)


def close_readers() -> None:
    """Close the connections that this process kept open; none of them may be in use."""
    with _keeping:
        for readers in _idle.values():
            for reader in readers:
                reader.close()
        _idle.clear()
