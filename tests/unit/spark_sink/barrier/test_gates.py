from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.barrier.applied import Applied
from shardmerge.spark_sink.barrier.gates import first_stop, key_stop
from shardmerge.spark_sink.barrier.partitions import Partition
from tests.unit.spark_sink.decided import TARGET, A, B, at, column, decision, folded, rows


def _gates(*records):
    return folded(*records).targets[TARGET].shards[A]


def test_a_shard_flows_when_every_version_is_reached():
    assert first_stop(_gates(decision(1, A, 10), decision(2, A, 20)), frontier=3) is None


def test_a_shard_stops_at_the_first_version_that_is_not_reached():
    stop = first_stop(_gates(decision(1, A, 10), decision(2, A, 20)), frontier=2)
    assert stop is not None
    assert stop.position == at(20)
    assert not stop.held
    assert "version 2" in stop.reason


def test_a_held_shard_stops_and_says_why():
    stop = first_stop(_gates(decision(1, A, 10), decision(2, A, 20, hold=True)), frontier=99)
    assert stop is not None
    assert (stop.held, stop.reason, stop.hint) == (True, "it conflicts", "undo it")


def test_a_released_gate_waits_for_the_version_that_released_it():
    gates = _gates(decision(1, A, 10, hold=True), decision(2, B, 10, releases=(A,)))
    stop = first_stop(gates, frontier=2)
    assert stop is not None
    assert not stop.held
    assert first_stop(gates, frontier=3) is None


OTHER = Partition("s1.app.a", 1)
RENAMED = {
    "columns": (replace(column("id"), column=Column("k", ColumnType("int"))),),
    "key": ("k",),
}
WIDENED = {"columns": (replace(column("id"), column=Column("id", ColumnType("varchar", 9))),)}
UNKNOWN = {"columns": ()}


@pytest.mark.parametrize("changed", [RENAMED, WIDENED, UNKNOWN], ids=["name", "type", "unknown"])
def test_rows_with_other_message_keys_wait_for_the_shards_earlier_rows(changed):
    gates = _gates(decision(1, A, 10), decision(2, A, 20), replace(decision(3, A, 30), **changed))
    behind = rows({OTHER: Applied(7)}, {Partition("s1.app.a", 0): 10, OTHER: 9})
    two = replace(behind.watermarks, partitions={"s1.app.a": 2})
    behind = replace(behind, watermarks=two)
    stop = key_stop(gates, behind)
    assert stop is not None
    assert stop[0] == 2
    assert stop[1].endswith(f"waits for rows of {A} before {at(30)} (s1.app.a/1@7)")
    held = first_stop(gates, 99, (*stop, "SM-1602"))
    assert held is not None
    assert (held.position, held.held) == (at(30), False)
    # Another partition stands at a row behind the gate, and this one too.
    arrived = replace(behind, applied={**behind.applied, OTHER: Applied(7, at(30))})
    assert key_stop(gates, arrived) is None


def test_a_table_that_is_made_anew_with_the_same_key_has_the_same_message_keys():
    gates = _gates(
        decision(1, A, 10), decision(2, A, 20, live=False, columns=()), decision(3, A, 30),
        decision(4, A, 40, columns=("id", "c")),
    )  # fmt: skip
    assert gates.key_changes == []
