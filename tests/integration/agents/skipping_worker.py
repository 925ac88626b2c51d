"""A worker whose consumer jumps over records; run as a script by the tests."""

import sys
from collections.abc import Mapping
from typing import Any

from shardmerge.agents.app import main
from shardmerge.agents.runtime.recovery import ConsumerThread

_seek = ConsumerThread._seek_sources


async def _too_far(self: ConsumerThread, consumer: Any) -> Mapping[Any, int]:
    offsets = dict(await _seek(self, consumer))
    for tp, offset in offsets.items():
        if tp.topic not in self.app.tables.changelog_topics:
            offsets[tp] = offset + 3
            consumer.seek(tp, offset + 3)
    return offsets


ConsumerThread._seek_sources = _too_far  # type: ignore[method-assign]
sys.exit(main())
