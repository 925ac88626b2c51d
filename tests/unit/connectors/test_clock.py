from __future__ import annotations

import sys
import time

import pytest

from shardmerge.connectors.clock import boot_s

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has CLOCK_BOOTTIME")


def test_readings_are_those_of_the_clock_that_counts_a_suspend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    read = boot_s()
    assert before <= read <= time.clock_gettime(time.CLOCK_BOOTTIME)
    # On a machine that was never suspended both clocks read the same.
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_BOOTTIME: 5_000.0}.__getitem__)
    assert boot_s() == 5_000.0
