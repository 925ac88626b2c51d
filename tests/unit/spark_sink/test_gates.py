from __future__ import annotations

from shardmerge.spark_sink.gates import first_stop

from .decided import TARGET, A, B, at, decision, folded


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
