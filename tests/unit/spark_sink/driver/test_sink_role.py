"""What a sink process is, for metrics and probes."""

from __future__ import annotations

from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.family import Sample
from shardmerge.spark_sink.driver.sink_role import SinkRole


def test_a_standby_is_ready_and_not_active() -> None:
    role = SinkRole()
    assert (role.is_ready(), role.samples()) == (False, [Sample(catalog.SINK_ACTIVE, (), 0.0)])
    role.waits()
    assert (role.is_ready(), role.samples()) == (True, [Sample(catalog.SINK_ACTIVE, (), 0.0)])


def test_the_writer_has_the_drivers_metrics_too() -> None:
    role, of_driver = SinkRole(), Sample(catalog.SINK_ROUND, (), 1.0)
    role.writes(lambda: [of_driver])
    assert role.is_ready()
    assert role.samples() == [Sample(catalog.SINK_ACTIVE, (), 1.0), of_driver]
