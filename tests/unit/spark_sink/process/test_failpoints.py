from __future__ import annotations

import subprocess
import sys

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.spark_sink.process.failpoints import SETTING
from shardmerge.spark_sink.process.settings import settings_from

PROGRAM = """
from shardmerge.spark_sink.process.failpoints import reach
for place in ("rows-read", "committed", "rows-read", "committed"):
    print(place, flush=True)
    reach(place)
"""


@pytest.mark.parametrize(
    ("setting", "places"),
    [("", 4), ("rows-read:1", 1), ("rows-read:2", 3), ("committed:2", 4), ("rows-read:3", 4)],
)
def test_a_process_ends_at_the_named_passing(setting: str, places: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False,
        env={SETTING: setting, "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    passings = setting in ("", "rows-read:3")
    assert ended.returncode == (0 if passings else -9), ended.stderr
    assert len(ended.stdout.split()) == places


def test_a_place_that_is_none_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="no failpoint") as raised:
        settings_from(["--pipeline", "p"], {SETTING: "nowhere:1"})
    assert "rows-read" in raised.value.hint
