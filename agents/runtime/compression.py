"""How much time the worker's producer takes to compress what it sends.

aiokafka compresses with gzip's level 9 and has no setting for it. On the records of a hundred
schema changes together, level 3 takes a sixth of the time, and the result has 3.4 instead of 2.7 %
of the size before.
"""

from __future__ import annotations

import sys
from functools import partial

from aiokafka.codec import gzip_encode
from aiokafka.record.default_records import DefaultRecordBatchBuilder

LEVEL = 3
"""Of gzip, from 1 to 9."""


def compress_lightly() -> None:
    """Have the producers of this process compress with ``LEVEL``."""
    # The class is of aiokafka's compiled module, or of the one in Python where that is missing.
    builder = sys.modules[DefaultRecordBatchBuilder.__module__]
    builder.gzip_encode = partial(gzip_encode, compresslevel=LEVEL)  # type: ignore[attr-defined]
