"""Whether a silent connector is busy reading towards a position of its source's binlog. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardmerge.schemas.model.position import SourcePosition

from .source_offset import SourceOffset

_QUIET_LOOKS = 3
_SNAPSHOT_KEYS = "incremental_snapshot"
_TIME = "ts_sec"


class BinlogReading:
    """Watches whether a connector still reads up to where the binlog ended when its answer was due.

    Args:
        end: Where the binlog ended at that moment.
    """

    def __init__(self, end: SourcePosition) -> None:
        self._end = end
        self._seen: Mapping[str, Any] = {}
        self._quiet_looks = 0

    def goes_on(self, offset: SourceOffset) -> bool:
        """Look again: whether the connector still reads towards the end, or reads a table.

        A connector that has passed the end would have answered. One whose offset
        stays the same for several looks is stuck.

        Args:
            offset: The connector's, now.
        """
        values = {key: value for key, value in offset.values.items() if key != _TIME}
        chunk = {key: value for key, value in values.items() if key.startswith(_SNAPSHOT_KEYS)}
        seen_chunk = {k: v for k, v in self._seen.items() if k.startswith(_SNAPSHOT_KEYS)}
        moved, chunk_moved = values != self._seen, bool(self._seen) and chunk != seen_chunk
        self._seen = values
        self._quiet_looks = 0 if moved else self._quiet_looks + 1
        if chunk_moved:
            return True
        return offset.position < self._end and self._quiet_looks < _QUIET_LOOKS
