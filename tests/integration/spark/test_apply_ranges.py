"""The tasks, with a real broker and a real target: exactly once in effect, holds, fencing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from shardmerge.schemas.model.errors import ContractError, TargetError
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.planning.ranges import RangeTask
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.session import MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks.apply_ranges import apply_tasks, apply_together
from shardmerge.spark_sink.targets.mysql.tasks.connection import TaskConnection, close_connections

from .rig import FILE, Rig, statement

PLAIN = "id INT NOT NULL PRIMARY KEY, v VARCHAR(20)"


def at(pos: int) -> SourcePosition:
    return SourcePosition(0, FILE, pos, 0)


@pytest.mark.usefixtures("way")
def test_a_range_is_applied_once_with_its_offset(rig: Rig) -> None:
    segment = rig.segment(rig.create(PLAIN))
    rig.produce(rig.event("c", {"id": n, "v": f"a{n}"}) for n in range(10))
    rig.produce([rig.event("c", {"id": 99, "v": "never"})], commit=False)
    rig.produce(
        [
            rig.event("u", {"id": 3, "v": "b3"}),
            rig.event("d", {"id": 4, "v": "a4"}),
            None,
            rig.event("d", {"id": 5, "v": "a5"}, at(5000)),
            rig.event("c", {"id": 50, "v": "a5"}, at(5000)),
        ]
    )

    result = rig.apply(segment)

    assert result.hold is None
    assert result.next_position is None
    assert (result.next_offset, result.rows) == (rig.end_offset(), 14)
    assert rig.control.offsets() == {Partition(rig.topic, 0): result.next_offset}
    assert rig.control.rows() == {rig.target: 14}
    expected = {n: f"a{n}" for n in range(10) if n not in (4, 5)} | {3: "b3", 50: "a5"}
    assert dict(rig.rows()) == expected


def test_a_range_that_was_applied_is_refused(rig: Rig) -> None:
    segment = rig.segment(rig.create(PLAIN))
    rig.produce([rig.event("c", {"id": 1, "v": "x"})])
    task = rig.task(segment)
    apply_together([task], rig.connection)

    with pytest.raises(TargetError, match="another writer moved") as error:
        apply_together([task], rig.connection)
    assert not error.value.retryable


def test_a_writer_of_an_older_epoch_writes_nothing(rig: Rig) -> None:
    segment = rig.segment(rig.create(PLAIN))
    rig.produce([rig.event("c", {"id": 1, "v": "x"})])
    task = rig.task(segment)
    rig.control.take_epoch()

    with pytest.raises(TargetError, match="another writer took over"):
        apply_together([task], rig.connection)
    assert rig.rows() == []
    assert rig.control.offsets() == {}


def test_taking_the_epoch_waits_for_the_older_writers_transaction(rig: Rig) -> None:
    session = rig.new_session()
    older = ControlStore(session, rig.config.control_database, rig.config.pipeline)
    taken: list[int] = []
    thread = threading.Thread(target=lambda: taken.append(rig.control.take_epoch()))

    with session.transaction():
        older.fence(rig.epoch)
        thread.start()
        thread.join(0.3)
        assert taken == []
    thread.join(10)
    assert taken == [rig.epoch + 1]
    session.close()


def test_a_round_has_a_bound_and_every_round_its_own_commit(rig: Rig) -> None:
    segment = rig.segment(rig.create(PLAIN))
    rig.produce(rig.event("c", {"id": n, "v": "x"}) for n in range(10))
    rig.produce([rig.event("c", {"id": "bad", "v": "x"})])

    result = rig.apply(segment, round_records=4)

    assert result.hold is not None
    assert (result.next_offset, result.rows, result.written) == (11, 10, 10)
    assert rig.control.rows() == {rig.target: 10}


def test_rows_from_the_gate_on_stay_in_kafka(rig: Rig) -> None:
    segment = rig.segment(rig.create(PLAIN))
    rig.produce(rig.event("c", {"id": n, "v": "x"}, at(100 * n)) for n in range(1, 5))

    result = rig.apply(segment, stop=at(300))

    assert (result.next_offset, result.next_position, result.hold) == (2, at(300), None)
    assert [row[0] for row in rig.rows()] == [1, 2]
    assert rig.apply(segment).next_offset == rig.end_offset()
    assert [row[0] for row in rig.rows()] == [1, 2, 3, 4]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("bad", [0, 37, 99])
def test_a_row_that_the_target_refuses_is_held_and_those_before_it_are_applied(
    rig: Rig, bad: int
) -> None:
    segment = rig.segment(rig.create(PLAIN))
    # Keys fall while offsets rise: the first row in the target's order is not the first to fail.
    rig.produce(
        rig.event("c", {"id": 1000 - n, "v": "x" * (21 if n >= bad else 20)}) for n in range(100)
    )

    result = rig.apply(segment)

    assert result.hold is not None
    assert "Data too long" in result.hold.reason
    assert result.hold.offset == result.next_offset == bad
    assert len(rig.rows()) == bad
    rig.session.execute(f"ALTER TABLE {rig.target.sql} MODIFY v VARCHAR(21)")
    assert rig.apply(segment).hold is None
    assert len(rig.rows()) == 100


@pytest.mark.parametrize(
    ("definition", "image", "reason"),
    [
        ("TINYINT", 128, "Out of range"),
        ("VARCHAR(20) NOT NULL", None, "null"),
        ("ENUM('a')", "b", "truncated"),
        ("DATE", 2_932_897, "outside the years"),
        ("INT", "5", "expected"),
        ("JSON", "{", "Invalid JSON"),
    ],
)
@pytest.mark.usefixtures("way")
def test_no_value_is_adapted_silently(
    rig: Rig, definition: str, image: object, reason: str
) -> None:
    segment = rig.segment(rig.create(f"id INT PRIMARY KEY, v {definition}"))
    rig.produce([rig.event("c", {"id": 1, "v": image})])

    hold = rig.apply(segment).hold

    assert hold is not None
    assert reason.lower() in hold.reason.lower()
    assert rig.rows() == []


@pytest.mark.usefixtures("way")
def test_a_collision_under_a_unique_key_is_held_and_overwrites_nothing(rig: Rig) -> None:
    segment = rig.segment(rig.create("id INT PRIMARY KEY, u INT, UNIQUE (u)"))
    rig.session.execute(f"INSERT INTO {rig.target.sql} VALUES (1000, 7)")
    rig.produce(rig.event("c", {"id": n, "u": n}) for n in range(10))

    hold = rig.apply(segment).hold

    assert hold is not None
    assert "Duplicate entry '7'" in hold.reason
    assert hold.offset == 7
    assert rig.rows() == [*((n, n) for n in range(7)), (1000, 7)]


@pytest.mark.usefixtures("way")
def test_unique_values_may_change_places_inside_a_batch(rig: Rig) -> None:
    segment = rig.segment(rig.create("id INT PRIMARY KEY, u INT, UNIQUE (u)"))
    rig.produce(rig.event("c", {"id": n, "u": n}) for n in (1, 2))
    rig.apply(segment)
    rig.produce(rig.event("u", {"id": i, "u": u}) for i, u in [(1, 0), (2, 1), (1, 2)])

    assert rig.apply(segment).hold is None
    assert rig.rows() == [(1, 2), (2, 1)]


def test_a_unique_key_that_the_sink_added_is_noticed(rig: Rig) -> None:
    segment = rig.segment(rig.create("id INT PRIMARY KEY, u INT"))
    rig.produce([rig.event("c", {"id": 1, "u": 1})])
    rig.apply(segment)
    entry = rig.journal().execute(
        rig.target, 1, 0, statement(f"ALTER TABLE {rig.target.sql} ADD UNIQUE KEY u (u)")
    )
    assert entry.state == "done"
    rig.produce([rig.event("c", {"id": 2, "u": 1})])

    hold = rig.apply(segment).hold
    assert hold is not None
    assert "Duplicate" in hold.reason
    assert rig.rows() == [(1, 1)]


@pytest.mark.usefixtures("way")
def test_keys_follow_the_targets_collation(rig: Rig) -> None:
    segment = rig.segment(rig.create("id VARCHAR(10) PRIMARY KEY, v INT"))
    rig.produce([rig.event("c", {"id": "a", "v": 1}), rig.event("c", {"id": "Ä'\\\t", "v": 5})])
    rig.apply(segment)
    rig.produce([rig.event("d", {"id": "a", "v": 1}), rig.event("c", {"id": "A", "v": 2})])

    assert rig.apply(segment).hold is None
    assert sorted(rig.rows()) == [("A", 2), ("Ä'\\\t", 5)]
    rig.produce([rig.event("d", {"id": "Ä'\\\t", "v": 5})])
    rig.apply(segment)
    assert rig.rows() == [("A", 2)]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("definition", "one", "other"),
    [
        ("BIGINT UNSIGNED", 2**64 - 1, 2**64 - 2),
        ("DECIMAL(20,0)", "9007199254740993", "9007199254740992"),
        ("BINARY(3)", "AAEC", "AAED"),
        ("DATE", 0, 1),
        ("TIMESTAMP(6)", "2021-03-28T01:30:00.000001Z", "2021-03-28T01:30:00.000002Z"),
        ("TIME(3)", -1000, 1000),
        ("BIT(9)", "AQE=", "AgE="),
        ("ENUM('x','y')", "x", "y"),
        ("DOUBLE", 0.1, 0.2),
    ],
)
def test_a_delete_by_a_key_of_any_type_hits_that_row_only(
    rig: Rig, definition: str, one: object, other: object
) -> None:
    segment = rig.segment(
        rig.create(f"id {definition} NOT NULL, n INT NOT NULL, v INT, PRIMARY KEY (n, id)")
    )
    rig.produce(rig.event("c", {"id": key, "n": 1, "v": 1}) for key in (one, other))
    rig.apply(segment)
    rig.produce(
        [rig.event("d", {"id": one, "n": 1, "v": 1}), rig.event("u", {"id": other, "n": 1, "v": 2})]
    )

    assert rig.apply(segment).hold is None
    assert rig.rows("v") == [(2,)]


def test_a_target_without_the_shards_key_still_keeps_one_row_per_key(rig: Rig) -> None:
    schema = rig.create("id INT NOT NULL, v INT")
    rig.produce(rig.event("c", {"id": n, "v": 1}) for n in range(5))
    rig.apply(rig.segment(schema, key=["id"]))
    rig.produce(rig.event("u", {"id": n, "v": 2}) for n in range(5))

    assert rig.apply(rig.segment(schema, key=["id"])).hold is None
    assert rig.rows() == [(n, 2) for n in range(5)]


@pytest.mark.usefixtures("way")
def test_a_column_that_the_row_lacks_takes_its_default(rig: Rig) -> None:
    schema = rig.create("id INT PRIMARY KEY, v INT, extra INT NOT NULL DEFAULT 9")
    segment = rig.segment(schema)
    rig.session.execute(f"INSERT INTO {rig.target.sql} VALUES (1, 1, 5)")
    narrow = replace(segment, columns=segment.columns[:2])
    rig.produce([rig.event("u", {"id": 1, "v": 2})])

    assert rig.apply(narrow).hold is None
    assert rig.rows() == [(1, 2, 9)]


def test_a_generated_column_is_left_to_the_target(rig: Rig) -> None:
    segment = rig.segment(rig.create("id INT PRIMARY KEY, g INT AS (id * 2) STORED"))
    rig.produce([rig.event("c", {"id": 4, "g": 8})])

    assert rig.apply(segment).hold is None
    assert rig.rows() == [(4, 8)]


def test_a_column_that_somebody_dropped_on_the_target_holds_the_shard(rig: Rig) -> None:
    segment = rig.segment(rig.create("id INT PRIMARY KEY, v INT"))
    rig.session.execute(f"ALTER TABLE {rig.target.sql} DROP COLUMN v")
    rig.produce([rig.event("c", {"id": 4, "v": 8})])

    hold = rig.apply(segment).hold
    assert hold is not None
    assert hold.code == "SM-1527"
    assert f"somebody changed {rig.target}" in hold.hint


def test_a_table_that_somebody_dropped_on_the_target_holds_the_shard(rig: Rig) -> None:
    segment = rig.segment(rig.create("id INT PRIMARY KEY, v INT"))
    rig.session.execute(f"DROP TABLE {rig.target.sql}")
    rig.produce([rig.event("c", {"id": 4, "v": 8})])

    hold = rig.apply(segment).hold
    assert hold is not None
    assert hold.code == "SM-1526"
    assert "reread" in hold.hint


def test_without_local_infile_statements_do_the_same(rig: Rig, stack: object) -> None:
    segment = rig.segment(rig.create(PLAIN))
    rig.produce(rig.event("c", {"id": n, "v": "x"}) for n in range(1000))
    rig.session.execute("SET GLOBAL local_infile = OFF")
    try:
        assert rig.apply(segment).hold is None
    finally:
        rig.session.execute("SET GLOBAL local_infile = ON")
    assert len(rig.rows()) == 1000


def test_offsets_that_retention_removed_stop_clearly(rig: Rig) -> None:
    segment = rig.segment(rig.create(PLAIN))
    rig.produce([rig.event("c", {"id": 1, "v": "x"})])
    task = replace(rig.task(segment), start_offset=50, end_offset=60)

    with pytest.raises(ContractError, match="does not exist"):
        apply_together([task], rig.connection)


def test_one_worker_applies_many_tasks_with_what_it_keeps(rig: Rig) -> None:
    segment = rig.segment(rig.create(PLAIN))
    rig.produce(rig.event("c", {"id": n, "v": "x"}) for n in range(4))
    task = rig.task(segment)
    tasks = [replace(task, start_offset=n, end_offset=n + 2) for n in (0, 2)]

    results = list(apply_tasks(tasks, rig.config))

    assert [r.next_offset for r in results] == [2, 4]
    assert len(rig.rows()) == 4
    close_connections()


@pytest.mark.parametrize("is_first", [True, False])
def test_rows_that_are_not_safe_leave_nothing_and_later_they_are_applied(
    rig: Rig, *, is_first: bool
) -> None:
    segment = rig.segment(rig.create(PLAIN))
    if not is_first:  # the next rows are written by one message
        rig.produce([rig.event("c", {"id": 0, "v": "x"})])
        list(apply_tasks([rig.task(segment)], rig.config))
    before = rig.rows()
    rig.produce(rig.event("c", {"id": n, "v": "x"}) for n in range(1, 4))
    task, asked = rig.task(segment), list[int]()

    def no() -> bool:
        asked.append(len(rig.rows()))
        return False

    assert list(apply_tasks([task], rig.config, no)) == []
    assert asked == [len(before)], "asked once, when nobody could see the rows"
    assert rig.rows() == before
    [result] = apply_tasks([task], rig.config, lambda: True)
    assert (result.written, len(rig.rows())) == (3, len(before) + 3)
    close_connections()


def test_a_row_that_cannot_be_applied_is_not_held_before_it_is_safe(rig: Rig) -> None:
    segment = rig.segment(rig.create(PLAIN))
    rig.produce([rig.event("c", {"id": "bad", "v": "x"})])
    task = rig.task(segment)

    assert list(apply_tasks([task], rig.config, lambda: False)) == []
    [result] = apply_tasks([task], rig.config, lambda: True)
    assert result.hold is not None
    close_connections()


def test_an_unbound_column_is_dropped_from_the_row(rig: Rig) -> None:
    schema = rig.create("id INT PRIMARY KEY, v INT")
    segment = rig.segment(schema)
    rig.produce([rig.event("c", {"id": 1, "v": 5})])
    task = rig.task(segment)
    task = replace(task, bindings={**task.bindings, "v#1": Binding("v#1", "")})

    assert apply_together([task], rig.connection)[0].written == 1
    assert rig.rows() == [(1, None)]


def test_rounds_of_any_size_give_the_same_rows(rig: Rig) -> None:
    segment = rig.segment(rig.create(PLAIN))
    rig.produce(rig.event("c", {"id": n % 70, "v": f"{n}"}) for n in range(300))

    result = rig.apply(segment, round_records=7)

    assert (result.rows, result.next_offset) == (300, rig.end_offset())
    last = {n % 70: f"{n}" for n in range(300)}
    assert dict(rig.rows()) == last


def _spread(rig: Rig, partitions: int, values: Sequence[bytes | None]) -> list[RangeTask]:
    """Tasks over a topic of several partitions, among which the records are spread."""
    topic = f"{rig.topic}_wide"
    servers = {"bootstrap.servers": rig.stack.bootstrap_servers}
    admin = AdminClient(servers)
    for done in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        done.result()
    producer = Producer(servers)
    for number, value in enumerate(values):
        producer.produce(topic, value, key=b"k", partition=number % partitions)
    producer.flush()
    task = rig.task(rig.segment(rig.schema()))
    return [
        replace(task, topic=topic, partition=n, end_offset=len(values[n::partitions]))
        for n in range(partitions)
    ]


@pytest.mark.usefixtures("way")
def test_partitions_are_applied_together_in_one_transaction(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.create(PLAIN)
    events: list[bytes | None] = []
    events += [rig.event("c", {"id": n, "v": f"a{n}"}) for n in range(12)]
    events += [None, rig.event("d", {"id": 1, "v": "a1"}), rig.event("u", {"id": 2, "v": "b2"})]
    tasks = _spread(rig, 4, events)
    real, commits = MySqlSession.execute, []

    def count(self: MySqlSession, sql: str, arguments: Sequence[object] = ()) -> int:
        if sql == "COMMIT":
            commits.append(sql)
        return real(self, sql, arguments)

    monkeypatch.setattr(MySqlSession, "execute", count)

    results = apply_together(tasks, rig.connection)

    assert len(commits) == 1
    assert [(r.next_offset, r.rows) for r in results] == [(4, 3), (4, 4), (4, 4), (3, 3)]
    assert (sum(r.written for r in results), sum(r.deleted for r in results)) == (11, 1)
    assert rig.control.offsets() == {r.place: r.next_offset for r in results}
    assert rig.control.rows() == {rig.target: 14}
    assert dict(rig.rows()) == {n: f"a{n}" for n in range(12) if n != 1} | {2: "b2"}
    with pytest.raises(TargetError, match="another writer moved"):
        apply_together(tasks[2:], rig.connection)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("bad", ["x" * 21, 5])
def test_a_row_that_cannot_be_applied_stops_its_own_partition_only(rig: Rig, bad: object) -> None:
    rig.create(PLAIN)
    tasks = _spread(
        rig, 3, [rig.event("c", {"id": n, "v": bad if n in (4, 7) else "x"}) for n in range(12)]
    )

    first, held, last = apply_together(tasks, rig.connection)

    assert [(r.next_offset, r.hold) for r in (first, last)] == [(4, None)] * 2
    assert held.hold is not None
    assert (held.next_offset, held.hold.offset, held.written) == (1, 1, 1)
    assert [row[0] for row in rig.rows()] == [0, 1, 2, 3, 5, 6, 8, 9, 11]


def test_rounds_over_several_partitions_are_bounded_too(rig: Rig) -> None:
    rig.create(PLAIN)
    tasks = _spread(rig, 3, [rig.event("c", {"id": n, "v": f"{n}"}) for n in range(50)])
    stop = SourcePosition(0, FILE, 1000 + 10 * 40, 0)
    tasks[1] = replace(tasks[1], stream=replace(tasks[1].stream, stop=stop))
    connection = TaskConnection(replace(rig.config, round_records=7))

    results = apply_together(tasks, connection)

    connection.close()
    gates = [r.next_position is not None for r in results]
    assert gates == [False, True, False]
    applied = {n for n in range(50) if n % 3 != 1} | set(range(1, 40, 3))
    assert dict(rig.rows()) == {n: f"{n}" for n in applied}
    assert sum(r.rows for r in results) == len(applied)


def test_what_was_read_to_its_end_is_not_fetched_any_more(rig: Rig) -> None:
    rig.create(PLAIN)
    tasks = _spread(rig, 2, [rig.event("c", {"id": n, "v": "x"}) for n in range(4)])
    apply_together(tasks, rig.connection)
    assert rig.connection.reader.consumer.assignment() == []
