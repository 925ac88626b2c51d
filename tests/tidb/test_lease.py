"""The writer's lease on a TiDB: who has it, and when it is free again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shardmerge.connectors.access.lease_names import Sinks
from shardmerge.spark_sink.targets.mysql.lease import MySqlLease
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress
from tests.integration.mysql.test_lease import (
    FREED_S,
    leases,
    prepared,
    sinks,
    test_a_sink_that_stands_still_loses_the_lease_and_takes_none_from_its_successor,
    test_a_sink_that_was_killed_frees_the_lease_at_once,
    test_a_transaction_of_a_driver_whose_machine_was_cut_off_is_ended,
    test_one_sink_has_the_lease_and_another_gets_it_when_it_is_freed,
)

__all__ = [
    "leases",
    "test_a_sink_that_stands_still_loses_the_lease_and_takes_none_from_its_successor",
    "test_a_sink_that_was_killed_frees_the_lease_at_once",
    "test_a_transaction_of_a_driver_whose_machine_was_cut_off_is_ended",
    "test_one_sink_has_the_lease_and_another_gets_it_when_it_is_freed",
]


@pytest.fixture(scope="module")
def target(tidb: MySqlAddress) -> MySqlAddress:
    return prepared(tidb)


def test_status_counts_sinks_and_does_not_know_their_hosts(
    target: MySqlAddress, leases: Callable[[], MySqlLease]
) -> None:
    assert sinks(target) == Sinks()
    one, two = leases(), leases()
    assert one.wait(FREED_S)
    assert not two.wait(0)
    assert one.sinks() == sinks(target) == Sinks("unknown", ("unknown",))
    one.close()
    assert two.wait(FREED_S)
    assert two.sinks() == sinks(target) == Sinks("unknown")
