"""What the driver relies on, held against every kind of target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.target.row_statements import clearing, copying, deletion
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.row_topics import RowTopic
from shardmerge.spark_sink.planning.ranges import RangeResult, TaskFailure
from shardmerge.spark_sink.targets.interface import JournalEntry
from tests.breadth import with_further
from tests.target_statements import NO_REASON

from .contract import ORIGIN, TIDB, Contract, Kind

# py4j leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
KINDS = with_further(["mysql80", "mariadb1011", "iceberg", *(["tidb"] if TIDB else [])], "mysql97")
DONE = JournalEntry("done")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, kind_of: Callable[[str], Kind]) -> Kind:
    return kind_of(str(request.param))


def test_what_row_topics_were_is_stored_by_the_present_writer_alone(contract: Contract) -> None:
    first = contract.start()
    assert first.target.state.row_topics() == {}
    one, two = RowTopic("id", 3), RowTopic("", 1)
    first.target.state.keep_row_topics(first.epoch, {"one": RowTopic("", 3), "two": two})
    second = contract.start()
    second.target.state.keep_row_topics(second.epoch, {"one": one})
    with pytest.raises(TargetError, match="took over"):
        first.target.state.keep_row_topics(first.epoch, {"two": one})
    assert second.target.state.row_topics() == {"one": one, "two": two}


def test_each_writer_gets_the_next_epoch(contract: Contract) -> None:
    first, second = contract.start(), contract.start()

    assert (first.epoch, second.epoch) == (1, 2)
    assert first.target.state.epoch() == second.target.state.epoch() == 2
    assert second.target.state.offsets() == {}
    assert second.target.state.rows() == {}


def test_a_statement_is_executed_once(contract: Contract) -> None:
    writer = contract.start()

    assert writer.execute(1, contract.create()) == DONE
    assert writer.execute(1, contract.create()) == DONE
    assert writer.execute(2, contract.add("w bigint unsigned")) == DONE
    assert writer.execute(2, contract.add("w bigint unsigned")) == DONE
    assert contract.columns() == ["id", "v", "n", "w"]
    again = contract.start()
    assert again.execute(2, contract.add("w bigint unsigned")) == DONE
    assert again.journal.load() == {
        (contract.target, 1, 0): DONE,
        (contract.target, 2, 0): DONE,
    }


def test_a_statement_that_does_not_apply_is_refused_until_it_does(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())

    entry = writer.execute(2, contract.rename("gone", "back"))

    assert entry.state == "refused" and "gone" in entry.error
    assert contract.columns() == ["id", "v", "n"]
    assert contract.start().journal.load()[contract.target, 2, 0] == entry
    writer = contract.start()
    assert writer.execute(3, contract.add("gone int")) == DONE
    assert writer.execute(2, contract.rename("gone", "back")) == DONE
    assert writer.journal.load()[contract.target, 2, 0] == DONE


def test_a_column_that_is_there_is_taken_when_it_fits(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    assert writer.execute(2, contract.add("w bigint")) == DONE

    assert writer.execute(3, contract.add("W int")) == DONE
    assert writer.execute(4, contract.drop("gone")) == DONE
    entry = writer.execute(5, contract.add("w varchar(9)"))

    assert entry.state == "refused" and "w is there already and does not fit" in entry.error
    assert contract.columns() == ["id", "v", "n", "w"]
    assert contract.start().journal.load()[contract.target, 5, 0] == entry


def test_a_table_that_is_there_is_taken_when_it_fits(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())

    assert writer.execute(9, contract.create()) == DONE
    wider = "create table t (id int not null primary key, v varchar(20), n int, x int)"
    other = Contract(contract.kind, contract.topic.stack, contract.name, wider)
    entry = writer.execute(10, other.create())
    assert entry.state == "refused" and "x" in entry.error


def test_rows_and_their_offsets_commit_together(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce(
        [contract.insert(id=n, v=f"v{n}", n=n) for n in range(5)]
        + [contract.topic.event("u", {"id": 1, "v": None, "n": -1})]
        + [contract.delete(id=2, v="v2", n=2), None, contract.delete(id=77, v="", n=0)]
    )

    result = writer.apply()

    assert contract.rows() == [(0, "v0", 0), (1, None, -1), (3, "v3", 3), (4, "v4", 4)]
    end = contract.topic.end_offset()
    assert (result.start_offset, result.next_offset, result.next_position) == (0, end, None)
    assert (result.rows, result.written, result.deleted, result.hold) == (8, 4, 2, None)
    assert writer.target.state.offsets() == {Partition(contract.topic.topic, 0): end}
    assert writer.target.state.rows() == {contract.target: 8}
    contract.topic.produce([contract.delete(id=0, v="v0", n=0), contract.insert(id=9, v="", n=0)])
    again = contract.start()
    assert again.target.state.offsets() == {Partition(contract.topic.topic, 0): end}
    assert again.apply().rows == 2
    assert contract.rows() == [(1, None, -1), (3, "v3", 3), (4, "v4", 4), (9, "", 0)]
    assert again.target.state.rows() == {contract.target: 10}


def test_a_range_without_rows_moves_its_offset(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([None])

    assert writer.apply().rows == 0
    end = contract.topic.end_offset()
    assert writer.target.state.offsets() == {Partition(contract.topic.topic, 0): end}


def test_the_same_task_is_not_applied_twice(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    task = writer.task()
    [first] = writer.run(task)
    assert isinstance(first, RangeResult)
    contract.topic.produce([contract.insert(id=1, v="b", n=2)])
    writer.apply()

    [failure] = writer.run(task)

    assert isinstance(failure, TaskFailure) and "another writer moved" in failure.message
    assert contract.rows() == [(1, "b", 2)]


def test_an_older_writer_neither_applies_nor_executes(contract: Contract) -> None:
    older = contract.start()
    older.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    task = older.task()
    newer = contract.start()

    [failure] = older.run(task)

    assert isinstance(failure, TaskFailure) and "another writer took over" in failure.message
    with pytest.raises(TargetError, match="another writer took over") as raised:
        older.execute(2, contract.add("w int"))
    assert not raised.value.retryable
    assert contract.rows() == [] and contract.columns() == ["id", "v", "n"]
    assert newer.target.state.offsets() == {}
    newer.apply()
    assert contract.rows() == [(1, "a", 1)]


def test_a_gate_stops_a_range_at_its_row(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    stop = contract.topic.next_place()
    contract.topic.produce([contract.insert(id=2, v="b", n=2)])
    second = contract.topic.end_offset() - 2

    result = writer.apply(stop=stop)

    assert result.next_offset == second and result.next_position is not None
    assert contract.rows() == [(1, "a", 1)]
    assert writer.apply().rows == 1
    assert contract.rows() == [(1, "a", 1), (2, "b", 2)]


def test_a_row_that_does_not_fit_is_held_and_those_before_it_applied(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce(
        [
            contract.insert(id=1, v="a", n=1),
            contract.insert(id=2, v="b", n=None),
            contract.insert(id=3, v="c", n=3),
        ]
    )

    result = writer.apply()

    assert result.hold is not None and result.hold.offset == 1 and "n" in result.hold.reason
    assert (result.next_offset, result.rows) == (1, 1)
    assert contract.rows() == [(1, "a", 1)]
    held = writer.apply()
    assert held.hold == result.hold and held.rows == 0


def test_rows_follow_added_renamed_dropped_and_widened_columns(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    writer.apply()

    for version, sql in enumerate(
        [
            contract.add("w int"), contract.rename("v", "text`2"), contract.drop("w"),
            contract.add("w varchar(9)"), contract.widen("n", "n bigint not null"),
        ], 2,
    ):  # fmt: skip
        assert writer.execute(version, sql) == DONE

    assert contract.rows() == [(1, "a", 1, None)]
    columns = "id int primary key, `text``2` varchar(20), n bigint not null, w varchar(9)"
    after = f"create table t ({columns})"
    contract = Contract(contract.kind, contract.topic.stack, contract.name, after)
    contract.topic.place_from(5_000)
    contract.topic.produce([contract.insert(id=2, **{"text`2": "b", "n": 2**40, "w": "x"})])
    later = contract.start()
    later.apply()
    assert contract.rows() == [(1, "a", 1, None), (2, "b", 2**40, "x")]


def test_a_truncation_stops_a_range_until_its_offset_is_moved(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    before, after = contract.insert(id=1, v="a", n=1), contract.insert(id=2, v="b", n=2)
    contract.topic.produce([before, contract.truncation(), after])

    result = writer.apply()

    assert (result.next_offset, result.rows, result.truncated, result.hold) == (1, 1, True, None)
    assert writer.apply().truncated
    writer.target.journal_of_thread(writer.epoch).change_rows(
        contract.target, clearing(contract.target, NO_REASON)
    )
    assert contract.rows() == []
    writer.move((0, 1, 2))
    assert not writer.apply().truncated
    assert contract.rows() == [(2, "b", 2)]


def test_offsets_move_forward_and_back_in_one_step(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=n, v="a", n=n) for n in range(3)])
    writer.apply()
    topic, end = contract.topic.topic, contract.topic.end_offset()

    with pytest.raises(TargetError, match="another writer moved"):
        writer.move((0, end, 0), (0, 1, 2))
    assert writer.target.state.offsets() == {Partition(topic, 0): end}
    writer.move((0, end, 1), (1, 0, 7))
    assert writer.target.state.offsets() == {Partition(topic, 0): 1, Partition(topic, 1): 7}
    assert writer.target.state.rows() == {contract.target: 3}
    assert writer.apply().rows == 2
    contract.start()
    with pytest.raises(TargetError, match="another writer took over"):
        writer.move((0, end, 0))


def test_rows_are_taken_back_from_the_end_with_the_offset(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce(contract.insert(id=n, v="x", n=n) for n in range(6))
    applied = writer.apply()
    assert len(contract.rows()) == 6
    task = writer.task()
    back = replace(
        task,
        start_offset=4,
        end_offset=applied.next_offset,
        stream=replace(task.stream, undoes=True),
    )

    [result] = writer.run(back)

    assert isinstance(result, RangeResult)
    assert (result.start_offset, result.next_offset, result.hold) == (applied.next_offset, 4, None)
    assert [row[0] for row in contract.rows()] == [0, 1, 2, 3]
    place = Partition(contract.topic.topic, 0)
    assert writer.target.state.offsets() == {place: 4}
    # From where it stood it is not done twice.
    [again] = writer.run(back)
    assert isinstance(again, TaskFailure)
    assert writer.apply().next_offset == applied.next_offset
    assert len(contract.rows()) == 6


def test_what_is_no_statement_is_noted_by_the_present_writer_alone(contract: Contract) -> None:
    first = contract.start()
    first.execute(1, contract.create())
    first.journal.note(contract.target, 1, -1, "a note")
    second = contract.start()
    with pytest.raises(TargetError, match="took over"):
        first.journal.note(contract.target, 1, -2, "another")
    assert second.journal.load() == {(contract.target, 1, 0): DONE, (contract.target, 1, -1): DONE}


def test_a_statement_changes_the_rows_of_one_shard_once(contract: Contract) -> None:
    columns = "id int primary key, v varchar(20), n int, d decimal(9,2), day date, _s varchar(194)"
    contract = Contract(
        contract.kind, contract.topic.stack, contract.name, f"create table t ({columns})"
    )
    one, two = ShardId("s", "a", "it's \\"), ShardId("s", "a", "its")
    writer = contract.start()
    assert writer.execute(1, contract.create()) == DONE
    names = ("id", "v", "n", "d", "day", "_s")
    rows = [(n, "V", n, Decimal("1.50"), None, str(one if n % 2 else two)) for n in range(4)]
    contract.topic.produce(
        contract.insert(**dict(zip(names, (*row[:3], "1.50", *row[4:]), strict=True)))
        for row in rows
    )
    writer.apply()
    assert contract.rows() == rows

    fill = contract.fill(
        one, v="value v'\\\n${env:HOME}", n="NULL", d="value -7.5", day="value 2020-02-03"
    )
    assert writer.change(2, fill) == DONE

    filled = ("v'\\\n${env:HOME}", None, Decimal("-7.50"), date(2020, 2, 3), str(one))
    assert contract.rows() == [rows[0], (1, *filled), rows[2], (3, *filled)]
    assert writer.change(3, contract.fill(one, v="value V", n="value 5")) == DONE
    later = contract.start()
    assert later.change(2, fill) == DONE
    assert [row[1:3] for row in contract.rows()] == [("V", 0), ("V", 5), ("V", 2), ("V", 5)]
    with pytest.raises(TargetError, match="another writer took over"):
        writer.change(4, contract.remove(two))
    with pytest.raises(TargetError, match="another writer took over"):
        writer.journal.change_rows(contract.target, contract.remove(two))
    assert later.change(4, contract.remove(two)) == DONE
    assert [row[0] for row in contract.rows()] == [1, 3]
    assert later.change(5, contract.remove(two)) == DONE
    later.journal.change_rows(
        contract.target, deletion(contract.target, (one, two), ORIGIN, NO_REASON)
    )
    assert contract.rows() == []
    assert contract.start().journal.load() == {(contract.target, v, 0): DONE for v in range(1, 6)}


@pytest.mark.parametrize("overwrites", [True, False])
def test_values_move_from_one_column_to_another(contract: Contract, overwrites: bool) -> None:
    text = "create table t (id int primary key, old int, new int)"
    contract = Contract(contract.kind, contract.topic.stack, contract.name, text)
    writer = contract.start()
    assert writer.execute(1, contract.create()) == DONE
    values = [(1, 7, None), (2, None, 5), (3, 8, 9), (4, None, None)]
    contract.topic.produce(contract.insert(id=n, old=a, new=b) for n, a, b in values)
    writer.apply()

    _, old, new = contract.schema.columns
    move = copying(contract.target, old, new, [], overwrites=overwrites)
    assert writer.change(2, move) == DONE

    moved = [7, 5, 8, None] if overwrites else [7, 5, 9, None]
    assert [row[2] for row in contract.rows()] == moved
    assert contract.start().change(2, move) == DONE
    assert [row[2] for row in contract.rows()] == moved


def test_a_change_of_rows_that_the_target_cannot_make_is_refused(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    statement = contract.remove(ShardId("s", "a", "t"))

    entry = writer.change(2, statement)

    assert entry.state == "refused" and "_s" in entry.error
    with pytest.raises(TargetError, match="_s") as raised:
        writer.journal.change_rows(contract.target, statement)
    assert raised.value.statement and not raised.value.retryable
    writer.execute(3, contract.add("_s varchar(9)"))
    assert writer.change(2, statement) == DONE


def test_a_batch_large_enough_for_a_job_is_the_same(contract: Contract) -> None:
    count = 6_000
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=n % 5_000, v=f"v{n}", n=n) for n in range(count)])
    writer.target.batches.start()

    result = writer.apply()

    assert (result.rows, result.written) == (count, 5_000)
    found = contract.rows()
    assert len(found) == 5_000
    assert found[0] == (0, "v5000", 5_000) and found[-1] == (4_999, "v4999", 4_999)
