"""Shards of two sources in one row topic, on a real Kafka and a real target; sources are played."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import ContractError, TargetError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.spark_sink.driver.loop import Driver
from tests.integration.spark.played_line import Line, rest, until

NOT_THERE = (1049, 1146)
"""MySQL's errors: no such database, no such table."""


@pytest.fixture
def line(stack: LocalStack) -> Iterator[Line]:
    with closing(Line(stack, shared=True)) as line:
        yield line


def two_sources(line: Line) -> tuple[ShardId, ShardId]:
    """A shard of each source."""
    [one] = line.make("a")
    with line.other_source():
        other = line.shard("a")
        line.begin()
        offset, place = line.change(), line.here()
        line.commit()
        line.decide(other, offset, place, "id a")
    return one, other


def insert(line: Line, shard: ShardId, *ids: int) -> None:
    """Rows in a transaction of the shard's source."""
    if shard.source != line.source:
        with line.other_source():
            insert(line, shard, *ids)
        return
    line.begin()
    line.rows(shard, *({"id": number, "a": number} for number in ids))
    line.commit()


def ids(line: Line) -> list[int]:
    try:
        return [row[0] for row in line.content()]
    except TargetError as error:
        if error.number not in NOT_THERE:
            raise
        return []


def offsets(line: Line) -> dict[str, int]:
    """Shard → its stored offset."""
    found = line.session.query(
        "SELECT shard_source, shard_database, shard_table, next_offset"
        f" FROM `{line.pipeline.target.control_database}`.shared_offsets"
    )
    return {str(ShardId(*shard)): offset for *shard, offset in found}


def stand_alike(line: Line) -> bool:
    """Whether all shards have one offset stored: those without rows follow after some seconds."""
    return len(set(offsets(line).values())) == 1


def standing(driver: Driver) -> dict[str, str]:
    """What the driver's shards stand at."""
    return {str(h.hold.shard): h.hold.reason for h in driver._holds._held.values()}


def test_rows_of_two_sources_alternate_and_come_to_the_target_once(line: Line) -> None:
    one, other = two_sources(line)
    for number in range(0, 40, 4):
        insert(line, one, number, number + 1)
        insert(line, other, number + 2, number + 3)
    driver = line.start()
    until(driver, lambda: ids(line) == list(range(40)))
    until(driver, lambda: stand_alike(line))
    assert set(offsets(line)) == {str(one), str(other)}
    again = line.start()
    insert(line, one, 50)
    until(again, lambda: ids(line) == [*range(40), 50])
    until(again, lambda: stand_alike(line))


def test_a_held_shard_stays_at_its_offset_and_is_read_from_there(line: Line) -> None:
    one, held = two_sources(line)
    insert(line, held, 1)
    with line.other_source():
        line.begin()
        offset, place = line.change(), line.here()
        line.rows(held, {"id": 2, "a": 2})
        line.commit()
        line.decide(held, offset, place, "id a", hold=True)
    insert(line, one, 11)
    insert(line, held, 3)
    insert(line, one, 12)
    driver = line.start()
    until(driver, lambda: ids(line) == [1, 11, 12])
    rest(driver)
    assert offsets(line)[str(held)] < offsets(line)[str(one)]
    again = line.start()
    insert(line, one, 13)
    # What was written by hand shows whether a row comes a second time.
    line.session.execute(f"UPDATE {line.target.sql} SET a = -1 WHERE id IN (1, 11)")
    line.begin()
    offset, place = line.change(), line.here()
    line.commit()
    line.decide(one, offset, place, "id a", releases=(held,))
    until(again, lambda: ids(line) == [1, 2, 3, 11, 12, 13])
    assert [row[1] for row in line.content() if row[0] in {1, 11}] == [-1, -1]
    until(again, lambda: stand_alike(line))


def test_a_source_with_an_undecided_change_delays_the_rows_of_no_other(line: Line) -> None:
    one, other = two_sources(line)
    driver = line.start()
    rest(driver)
    with line.other_source():
        line.begin()
        offset, place = line.change(), line.here()
        line.rows(other, {"id": 1, "a": 1})
        line.commit()
    insert(line, one, 2)
    until(driver, lambda: ids(line) == [2])
    rest(driver)
    assert ids(line) == [2]
    with line.other_source():
        line.decide(other, offset, place, "id a")
    until(driver, lambda: ids(line) == [1, 2])


def test_rows_of_a_shard_that_is_not_known_yet_are_not_lost(line: Line) -> None:
    one, other = two_sources(line)
    late = line.shard("late")
    line.begin()
    offset, place = line.change(), line.here()
    line.rows(late, {"id": 1, "a": 1})
    line.commit()
    insert(line, other, 2)
    insert(line, late, 3)
    driver = line.start()
    until(driver, lambda: ids(line) == [2])
    line.decide(late, offset, place, "id a")
    insert(line, one, 4)
    until(driver, lambda: ids(line) == [1, 2, 3, 4])


def test_a_record_that_does_not_say_whose_it_is_stops_every_shard_there(line: Line) -> None:
    one, other = two_sources(line)
    insert(line, one, 1)
    line.begin()
    source = {"name": line.source, "table": "a", "file": "binlog.000001", "pos": 9}
    line.put(line.shared, json.dumps({"op": "c", "after": {"id": 7}, "source": source}).encode())
    line.commit()
    insert(line, other, 2)
    insert(line, one, 3)
    driver = line.start()
    until(driver, lambda: ids(line) == [1])
    until(driver, lambda: set(standing(driver)) == {str(one), str(other)})
    assert all("does not say which shard" in reason for reason in standing(driver).values())
    rest(driver)
    assert ids(line) == [1]


def test_a_tombstone_is_nobodys(line: Line) -> None:
    one, _ = two_sources(line)
    line.begin()
    line.put(line.shared, None)
    line.commit()
    insert(line, one, 1)
    driver = line.start()
    until(driver, lambda: ids(line) == [1])
    assert not standing(driver)


def test_many_shards_without_a_row_go_along(line: Line) -> None:
    shards = line.make(*(f"t{number}" for number in range(30)), partitions=2)
    driver = line.start()
    for number in range(3):
        insert(line, shards[number], number)
    until(driver, lambda: ids(line) == [0, 1, 2])
    until(driver, lambda: stand_alike(line))
    assert len(offsets(line)) == 30
    insert(line, shards[-1], 9)
    until(driver, lambda: ids(line) == [0, 1, 2, 9])
    until(driver, lambda: stand_alike(line))


def test_a_row_that_the_target_refuses_holds_its_shard_alone(line: Line) -> None:
    one, other = two_sources(line)
    insert(line, one, 1)
    line.begin()
    line.rows(one, {"id": 2, "a": 1 << 40})
    line.commit()
    insert(line, other, 3)
    insert(line, one, 4)
    driver = line.start()
    until(driver, lambda: ids(line) == [1, 3])
    rest(driver)
    assert set(standing(driver)) == {str(one)}
    line.session.execute(f"ALTER TABLE {line.target.sql} MODIFY a BIGINT")
    until(driver, lambda: ids(line) == [1, 2, 3, 4])


def test_another_topic_of_a_route_stops_a_running_pipeline(line: Line) -> None:
    one, _ = two_sources(line)
    insert(line, one, 1)
    until(line.start(), lambda: ids(line) == [1])
    line.shared = ""
    line.route(RoutingRule(".*", "app", ".*", "", ""))
    with pytest.raises(ContractError, match="were applied from all_"):
        line.start()
