"""The offset barrier under random histories: a toy Kafka, a toy target that refuses, the real plan.

Anything may happen between any two steps of the driver (``barrier_machine``).
"""

from __future__ import annotations

from tests.properties.barrier_machine import SETTINGS, BarrierMachine
from tests.toy_sink import PartialSink, StaleSink

TestBarrier = BarrierMachine.TestCase
TestBarrier.settings = SETTINGS


class StaleBarrierMachine(BarrierMachine):
    """The same with watermarks that are older than the decisions."""

    sink_class = StaleSink


class PartialBarrierMachine(BarrierMachine):
    """The same with rounds that ask for some ends only, as in a calm sink of many partitions."""

    sink_class = PartialSink


TestStaleBarrier = StaleBarrierMachine.TestCase
TestStaleBarrier.settings = SETTINGS

TestPartialBarrier = PartialBarrierMachine.TestCase
TestPartialBarrier.settings = SETTINGS
