"""The places at which ``SHARDMERGE_SINK_FAILPOINT`` can kill a process.

That is the driver, a Python worker or a rebuild.

Its value is ``<place>:<passing>``: ``rows-written:3`` kills a process when it reaches that place
for the third time. With ``:stop`` behind that, the process is stopped instead
(``connectors.failpoints``). Every process counts for itself. For tests only; off unless it is set.
"""

from __future__ import annotations

import os
from functools import lru_cache

from shardmerge.connectors.failpoints import Passed, failpoint

SETTING = "SHARDMERGE_SINK_FAILPOINT"
PLACES = (
    "epoch-taken", "batch-planned", "batch-applied", "progress-published",
    "rows-read", "rows-written", "offsets-moved", "committed",
    "chunk-read", "chunk-written", "chunk-committed", "load-moved",
    "rows-staged", "snapshot-copied",
    "statement-begun", "statement-executed", "statement-done",
    "rows-changed", "shard-emptied", "offsets-rewound", "restart-noted",
    "exchange-begun", "exchange-staged", "exchanged",
)  # fmt: skip
"""By line: in a round of the driver; in a task; in a chunk of a first load, and when a load moves
to another gate; in a snapshot; around the statement of a decision; around a statement that changes
rows; in a rebuild, before its tables are exchanged, and within and after the exchange of an Iceberg
table."""


def reach(place: str) -> None:
    """Say that the process has reached a place, at which it may be killed.

    Raises:
        ConfigError: The variable names no place.
    """
    _passed()(place)


@lru_cache(maxsize=1)
def _passed() -> Passed:
    return failpoint(os.environ.get(SETTING, ""), PLACES)
