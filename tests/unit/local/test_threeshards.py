from __future__ import annotations

import pytest

from shardmerge.local.threeshards import SHARDS, STEPS, Writer

EMITTED = [
    "ALTER TABLE `merged`.`tbl` ADD COLUMN `Level` int unsigned NOT NULL DEFAULT 0",
    None,
    "ALTER TABLE `merged`.`tbl` ALTER COLUMN `NAME` SET DEFAULT ''",
    "ALTER TABLE `merged`.`tbl` ALTER COLUMN `Level` DROP DEFAULT",
    None,
    "ALTER TABLE `merged`.`tbl` DROP COLUMN `NAME`",
]


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_a_step_knows_what_it_must_become(number: int) -> None:
    emitted = EMITTED[number]
    statements = () if emitted is None else (emitted,)
    assert STEPS[number].matches(statements)
    assert not STEPS[number].matches((*statements, "DROP TABLE `merged`.`tbl`"))


def test_shards_write_in_id_ranges_of_their_own() -> None:
    first = [Writer(index).insert(1).split("VALUES")[1] for index in range(len(SHARDS))]
    assert len(set(first)) == len(SHARDS)


def test_a_writer_follows_its_shards_columns() -> None:
    writer = Writer(0)
    writer.insert(3)
    writer.altered(STEPS[0].action)
    assert "(ID, NAME, Level)" in writer.insert(1)
    writer.altered("DROP COLUMN NAME")
    assert "(ID, Level)" in writer.insert(1)
    assert all("SET Level" in statement for statement in writer.update(2))


def test_a_deleted_row_is_not_changed_again() -> None:
    writer = Writer(1)
    writer.insert(2)
    deleted = {s.rsplit("=", 1)[1] for s in writer.delete(1)}
    updated = {s.rsplit("=", 1)[1] for s in writer.update(5)}
    assert updated.isdisjoint(deleted)


def test_two_writers_of_a_shard_write_the_same() -> None:
    one, two = Writer(2), Writer(2)
    assert one.insert(5) == two.insert(5)
    assert one.update(2) == two.update(2)
    assert one.delete(2) == two.delete(2)
