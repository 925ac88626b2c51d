"""Whether everything runs, as by ``make test-all``. Standard library only."""

from __future__ import annotations

import os

IS_WHOLE = os.environ.get("SHARDMERGE_TESTS", "") == "all"
