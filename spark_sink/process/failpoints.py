"""The places at which ``SHARDMERGE_SINK_FAILPOINT`` can kill the driver or a Python worker.

``<place>:<passing>``, such as ``rows-written:3``; every process counts for itself. Off unless the
variable is set: for tests only.
"""

from __future__ import annotations

import os
from functools import lru_cache

from shardmerge.connectors.failpoints import Passed, failpoint

SETTING = "SHARDMERGE_SINK_FAILPOINT"
PLACES = (
    "epoch-taken", "batch-planned", "batch-applied", "progress-published",
    "rows-read", "rows-written", "offsets-moved", "committed",
    "statement-begun", "statement-executed", "statement-done",
    "rows-changed", "shard-emptied", "offsets-rewound",
)  # fmt: skip
"""The driver's round; a task's; the statement of a decision; a statement that changes rows."""


def reach(place: str) -> None:
    """Come by a place.

    Raises:
        ConfigError: The variable names no place.
    """
    _passed()(place)


@lru_cache(maxsize=1)
def _passed() -> Passed:
    return failpoint(os.environ.get(SETTING, ""), PLACES)
