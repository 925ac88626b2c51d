"""The sink's tasks into a TiDB, by several connections: each range once, whoever dies."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.pipeline.settings import Target
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask, TaskFailure
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.tasks import rounds
from shardmerge.spark_sink.targets.mysql.tasks.connection import TIDB_CONNECTIONS, close_connections
from shardmerge.spark_sink.targets.mysql.tasks.task_runs import run_tasks
from tests.integration.spark.chaos import TASK_PLACES, Chaos
from tests.integration.spark.played_line import Line
from tests.integration.spark.rig import Rig
from tests.integration.spark.test_apply_crashes import (
    test_a_crash_before_the_commit_leaves_nothing_and_the_rerun_everything,
    test_a_deadlock_is_tried_again,
    test_a_lost_acknowledgement_of_commit_is_found_out,
    test_a_session_that_the_server_ended_is_made_again,
)
from tests.integration.spark.test_apply_ranges import (
    _spread,
    test_a_collision_under_a_unique_key_is_held_and_overwrites_nothing,
    test_a_range_that_was_applied_is_refused,
    test_a_round_has_a_bound_and_every_round_its_own_commit,
    test_a_row_that_cannot_be_applied_stops_its_own_partition_only,
    test_a_unique_key_that_the_sink_added_is_noticed,
    test_a_writer_of_an_older_epoch_writes_nothing,
    test_rounds_of_any_size_give_the_same_rows,
    test_rounds_over_several_partitions_are_bounded_too,
    test_rows_from_the_gate_on_stay_in_kafka,
    test_taking_the_epoch_waits_for_the_older_writers_transaction,
    test_unique_values_may_change_places_inside_a_batch,
)

__all__ = [
    "test_a_collision_under_a_unique_key_is_held_and_overwrites_nothing",
    "test_a_crash_before_the_commit_leaves_nothing_and_the_rerun_everything",
    "test_a_deadlock_is_tried_again",
    "test_a_lost_acknowledgement_of_commit_is_found_out",
    "test_a_range_that_was_applied_is_refused",
    "test_a_round_has_a_bound_and_every_round_its_own_commit",
    "test_a_row_that_cannot_be_applied_stops_its_own_partition_only",
    "test_a_session_that_the_server_ended_is_made_again",
    "test_a_unique_key_that_the_sink_added_is_noticed",
    "test_a_writer_of_an_older_epoch_writes_nothing",
    "test_rounds_of_any_size_give_the_same_rows",
    "test_rounds_over_several_partitions_are_bounded_too",
    "test_rows_from_the_gate_on_stay_in_kafka",
    "test_taking_the_epoch_waits_for_the_older_writers_transaction",
    "test_unique_values_may_change_places_inside_a_batch",
]
PLAIN = "id INT NOT NULL PRIMARY KEY, v VARCHAR(20)"
KEYS = 402
EVENTS = 2 * KEYS + KEYS // 3


def values(rig: Rig) -> list[bytes | None]:
    """Every key is made, changed, and one of three goes."""
    made = [rig.event("c", {"id": n, "v": "new"}) for n in range(KEYS)]
    changed = [rig.event("u", {"id": n, "v": f"v{n}"}) for n in range(KEYS)]
    # As many records each time, so that a key's are in one of six partitions: some are tombstones.
    gone = [None if n % 3 else rig.event("d", {"id": n, "v": f"v{n}"}) for n in range(KEYS)]
    return [*made, *changed, *gone]


def expected() -> list[tuple[object, ...]]:
    return [(n, f"v{n}") for n in range(KEYS) if n % 3]


def spread(rig: Rig) -> list[RangeTask]:
    """Tasks over a topic in which each key has one partition."""
    return _spread(rig, 6, values(rig))


def anew(rig: Rig, tasks: list[RangeTask]) -> list[RangeTask]:
    """The same tasks as a driver that takes over plans them."""
    stored, epoch = rig.control.offsets(), rig.control.take_epoch()
    tasks = [
        replace(task, start_offset=stored.get(task.place, 0), writer_epoch=epoch) for task in tasks
    ]
    return [task for task in tasks if task.start_offset < task.end_offset]


def run(rig: Rig, tasks: list[RangeTask]) -> list[RangeResult | TaskFailure]:
    """By several connections."""
    config = replace(rig.config.for_kind("tidb"), round_records=30)
    try:
        return list(run_tasks([[task] for task in tasks], config))
    finally:
        close_connections()


# --- the fence


def test_transactions_of_one_writer_do_not_wait_for_each_other_and_the_next_waits_for_all(
    rig: Rig,
) -> None:
    sessions = [rig.new_session(lock_wait_s=5) for _ in range(3)]
    name = rig.config.control_database
    taken: list[int] = []
    thread = threading.Thread(target=lambda: taken.append(rig.control.take_epoch()))
    for session in sessions:
        session.execute("START TRANSACTION")
        ControlStore(session, name, rig.config.pipeline).fence(rig.epoch)
    thread.start()
    for session in sessions:
        thread.join(0.3)
        assert taken == []
        session.execute("COMMIT")
    thread.join(30)
    assert taken == [rig.epoch + 1]
    for session in sessions:
        with pytest.raises(TargetError, match="took over"), session.transaction():
            ControlStore(session, name, rig.config.pipeline).fence(rig.epoch)
        session.close()


def test_a_newer_writer_takes_over_while_several_connections_write(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.create(PLAIN)
    tasks = spread(rig)
    other = rig.new_session(lock_wait_s=30)
    control = ControlStore(other, rig.config.control_database, rig.config.pipeline)
    thread = threading.Thread(target=control.take_epoch)
    started = threading.Event()
    one = threading.Lock()
    passed: list[str] = []

    def reach(place: str) -> None:
        with one:
            passed.append(place)
            if passed.count("rows-written") >= 5 and not started.is_set():
                thread.start()
                started.set()
        # Behind its commit a connection holds nothing, so the newer writer is let in.
        if place == "committed" and started.is_set():
            thread.join(60)

    monkeypatch.setattr(rounds, "reach", reach)
    failures = [r for r in run(rig, tasks) if isinstance(r, TaskFailure)]
    thread.join(60)
    assert failures and all("took over" in f.message for f in failures)
    between = sum(rig.control.offsets().values())
    assert 0 < between < sum(task.end_offset for task in tasks)

    results = run(rig, anew(rig, tasks))
    assert not any(isinstance(r, TaskFailure) for r in results)
    assert rig.rows() == expected()
    assert rig.control.rows() == {rig.target: EVENTS}
    other.close()


# --- several connections


def test_units_are_applied_side_by_side_and_each_record_once(rig: Rig) -> None:
    rig.create(PLAIN)
    tasks = spread(rig)
    results = [r for r in run(rig, tasks) if isinstance(r, RangeResult)]
    assert sum(r.rows for r in results) == EVENTS
    assert sum(r.next_offset for r in results) == 3 * KEYS
    assert rig.rows() == expected()
    assert rig.control.rows() == {rig.target: EVENTS}
    again = run(rig, tasks)
    assert all(isinstance(r, TaskFailure) and "another writer moved" in r.message for r in again)
    assert rig.rows() == expected()


@pytest.mark.parametrize("place", TASK_PLACES)
def test_whichever_connection_fails_where_the_next_writer_goes_on_from_what_is_committed(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    rig.create(PLAIN)
    tasks = spread(rig)
    passed: list[str] = []

    def reach(reached: str) -> None:
        passed.append(reached)
        # From then on every connection fails at its next passing, as in a process that ends.
        if passed.count(place) > 4 and reached == place:
            raise TargetError("the process ends")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "reach", reach)
        failures = [r for r in run(rig, tasks) if isinstance(r, TaskFailure)]
    assert len(failures) == rig.config.for_kind("tidb").connections

    results = run(rig, anew(rig, tasks))
    assert not any(isinstance(r, TaskFailure) for r in results)
    assert rig.rows() == expected()
    assert rig.control.rows() == {rig.target: EVENTS}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("shared", [False, True], ids=["own topics", "one topic"])
def test_sinks_that_die_between_any_two_steps_apply_everything_once(
    stack: LocalStack, tidb_server: Target, tmp_path: Path, shared: bool
) -> None:
    line = Line(stack, shared=shared, server=tidb_server)
    with closing(line), closing(Chaos(line, tmp_path, seed=1)) as chaos:
        for place in (
            "rows-read:1", "rows-written:1", "offsets-moved:2", "committed:1", "statement-begun:2",
            "statement-executed:2", "statement-done:1", "rows-changed:1", "shard-emptied:1",
            "offsets-rewound:1",
        ):  # fmt: skip
            chaos.feed()
            chaos.fail_at(place)
        for place in ("rows-written", "committed"):
            chaos.fail_workers(place, TIDB_CONNECTIONS + 1)
        chaos.take_over()
        chaos.finish()
        assert chaos.counts["sinks killed at failpoints"] == 10
