"""Statements and moves on Iceberg tables: one commit each, whatever comes between. No Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.records.decisions import StatementKind
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.row_topics import RowTopic
from shardmerge.spark_sink.planning.ranges import Advance
from shardmerge.spark_sink.targets.iceberg.ddl import journal as module
from shardmerge.spark_sink.targets.iceberg.ddl.journal import IcebergJournal
from shardmerge.spark_sink.targets.iceberg.store import IcebergStore
from shardmerge.spark_sink.targets.iceberg.texts.decided import Decided
from shardmerge.spark_sink.targets.iceberg.texts.layout import Field, Layout
from shardmerge.spark_sink.targets.iceberg.texts.stored import StoredState
from shardmerge.spark_sink.targets.interface import JournalEntry
from tests.iceberg_catalog import LakeCatalog, LakeReading
from tests.target_statements import written

TARGET = TargetTable("m", "t")
SHARD = ShardId("s1", "app", "a")
DONE = JournalEntry("done")
CREATE = "CREATE TABLE `m`.`t` (`id` int NOT NULL, `_s` string) USING iceberg"
REMOVE = "DELETE FROM `m`.`t` WHERE `_s` = 's1/app.a'"
MERGE = (
    "MERGE INTO `lake`.`m`.`t` t USING (SELECT 1) s ON t.`_s` = 's1/app.a' WHEN MATCHED THEN DELETE"
)


class _World:
    """A catalog with one table, and what was staged."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.catalog, self.merged = LakeCatalog(), list[str]()
        monkeypatch.setattr(module, "stage", self._stage)
        writer = self.store()
        writer.prepare()
        self.epoch = writer.take_epoch()
        assert self.execute(1, CREATE) == DONE

    def store(self) -> IcebergStore:
        return IcebergStore(lambda: cast(Any, self.catalog), TargetTable("control", "p"), "p")

    def journal(self) -> IcebergJournal:
        return IcebergJournal(self.store(), self.epoch)

    def execute(self, version: int, sql: str, shard: ShardId | None = None) -> JournalEntry:
        kind = StatementKind.ROWS if shard else StatementKind.EXPANDING
        statement = written(sql, kind, shard=shard)
        return self.journal().execute(TARGET, version, 0, statement)

    def move(self, *moves: tuple[int, int, int]) -> None:
        found = [Advance("topic", *move, TARGET, 0, 0, 0) for move in moves]
        self.store().move(self.epoch, found)

    @property
    def offsets(self) -> Mapping[Any, int]:
        return self.store().offsets()

    @property
    def snapshot(self) -> int | None:
        return self.catalog.tables[TARGET].snapshot

    def others(self) -> None:
        """Somebody else's rows."""
        self.catalog.change(TARGET, snapshot=1_000 + (self.snapshot or 0))

    def _stage(self, session: object, staged_as: str, sql: str, what: str) -> None:
        self.merged.append(sql)
        there = self.catalog.tables[TARGET]
        staged = {**there.staged, staged_as: (len(self.merged), there.snapshot)}
        self.catalog.change(TARGET, staged=staged)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> _World:
    return _World(monkeypatch)


def test_offsets_move_together_or_not_at_all(world: _World) -> None:
    world.move((0, 0, 9), (1, 0, 5))
    assert world.offsets == {Partition("topic", 0): 9, Partition("topic", 1): 5}

    with pytest.raises(TargetError, match="another writer moved topic/1"):
        world.move((0, 9, 3), (1, 4, 6))

    assert world.offsets == {Partition("topic", 0): 9, Partition("topic", 1): 5}
    world.catalog.between = [world.others]
    world.move((0, 9, 3), (1, 5, 6))
    assert world.offsets == {Partition("topic", 0): 3, Partition("topic", 1): 6}
    world.catalog.unanswered = True
    world.move((0, 3, 9))
    assert world.offsets == {Partition("topic", 0): 9, Partition("topic", 1): 6}


def test_rows_and_the_entry_of_their_statement_are_one_commit(world: _World) -> None:
    assert world.execute(2, REMOVE, SHARD) == DONE
    assert (world.merged, world.snapshot) == ([MERGE], 1)
    assert world.execute(2, REMOVE, SHARD) == DONE
    assert world.merged == [MERGE]
    assert world.journal().load() == {(TARGET, 1, 0): DONE, (TARGET, 2, 0): DONE}


def test_rows_that_others_commit_between_are_changed_too(world: _World) -> None:
    world.catalog.between = [world.others]

    world.journal().change_rows(TARGET, written(REMOVE))

    assert (world.merged, world.snapshot) == ([MERGE, MERGE], 2)
    world.catalog.unanswered = True
    assert world.execute(2, REMOVE, SHARD) == DONE
    assert (len(world.merged), world.snapshot) == (3, 3)


def test_a_writer_that_is_replaced_between_changes_no_rows_and_moves_nothing(
    world: _World,
) -> None:
    def taken() -> None:
        world.store().take_epoch()

    for change in (
        lambda: world.journal().change_rows(TARGET, written(REMOVE)),
        lambda: world.execute(2, REMOVE, SHARD),
        lambda: world.move((0, 0, 9)),
    ):
        world.epoch = world.store().epoch()
        world.catalog.between = [taken]
        with pytest.raises(TargetError, match="another writer took over") as raised:
            change()
        assert not raised.value.retryable and not raised.value.statement
        with pytest.raises(TargetError, match="another writer took over"):
            change()
    assert (world.snapshot, world.offsets) == (None, {})
    assert set(world.journal().load()) == {(TARGET, 1, 0)}


def test_what_cannot_be_done_is_told(world: _World) -> None:
    entry = world.execute(2, "DELETE FROM `m`.`t` WHERE now() = 1", SHARD)
    assert entry.state == "refused" and "is not known" in entry.error
    assert world.journal().load()[TARGET, 2, 0] == entry
    with pytest.raises(TargetError, match="not executed") as raised:
        world.journal().change_rows(TARGET, written("DELETE FROM `m`.`t` LIMIT 1"))
    assert raised.value.statement and raised.value.hint
    del world.catalog.tables[TARGET]
    with pytest.raises(TargetError, match="somebody dropped it") as raised:
        world.journal().change_rows(TARGET, written(REMOVE))
    assert raised.value.statement and raised.value.hint
    assert "somebody dropped it" in world.execute(3, REMOVE, SHARD).error
    assert world.merged == []


def test_a_column_that_is_there_is_taken_when_it_fits(world: _World) -> None:
    before = world.catalog.tables[TARGET].layout

    assert world.execute(2, "ALTER TABLE `m`.`t` ADD COLUMN `_S` string") == DONE
    assert world.execute(3, "ALTER TABLE `m`.`t` DROP COLUMN `gone`") == DONE
    entry = world.execute(4, "ALTER TABLE `m`.`t` ADD COLUMN `_s` int")

    assert entry.state == "refused" and "_s is there already and does not fit" in entry.error
    assert world.catalog.tables[TARGET].layout == before
    assert world.execute(4, "ALTER TABLE `m`.`t` ADD COLUMN `n` int") == DONE
    assert world.catalog.tables[TARGET].layout != before


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE `m`.`t` ADD COLUMN `n` int",
        "ALTER TABLE `m`.`t` RENAME COLUMN `_s` TO `n`",
        "ALTER TABLE `m`.`t` ALTER COLUMN `_s` DROP NOT NULL",
    ],
)
def test_a_table_that_is_not_as_expected_after_the_commit_stays_refused_until_it_is(
    world: _World, sql: str
) -> None:
    def spoiled(real: Layout) -> Layout:
        fields = tuple(replace(f, required=f.name == "n" or not f.required) for f in real.fields)
        return replace(real, fields=fields)

    load = world.catalog.load

    def spoiling(name: TargetTable) -> LakeReading:
        found = load(name)
        found.layout = spoiled(found.layout)
        return found

    world.catalog.load = spoiling  # type: ignore[method-assign]
    entry = world.execute(2, sql)
    assert entry.state == "refused" and "not as expected" in entry.error
    assert world.journal().load()[TARGET, 2, 0] == entry
    world.catalog.load = load  # type: ignore[method-assign]
    assert world.execute(2, sql) == DONE
    assert world.journal().load()[TARGET, 2, 0] == DONE


def test_what_row_topics_were_is_kept_beside_what_others_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = _World(monkeypatch)
    assert world.store().row_topics() == {}, "also of a control table that is older than this"
    one, two = RowTopic("id", 3), RowTopic("", 1)
    world.store().keep_row_topics(world.epoch, {"one": one})
    world.catalog.between.append(
        lambda: world.store().register(TargetTable("m", "other"), world.epoch)
    )
    world.store().keep_row_topics(world.epoch, {"two": two})
    assert world.store().row_topics() == {"one": one, "two": two}
    assert len(world.store().tables()) == 2
    world.store().take_epoch()
    with pytest.raises(TargetError, match="took over"):
        world.store().keep_row_topics(world.epoch, {"two": one})
    assert world.store().row_topics()["two"] == two


def test_a_table_that_a_rebuild_has_made_keeps_what_was_decided_for_it(world: _World) -> None:
    shadow, store = TargetTable("m", "s"), world.store()
    layout = Layout((Field(4, "id", "int", True), Field(9, "note", "string")), 9, (4,))
    made = StoredState(decided=Decided(layout, others=frozenset({9})))
    world.catalog.create(shadow, layout, store.properties(made))
    create = "CREATE TABLE `m`.`s` (`id` int NOT NULL, `note` string) USING iceberg"
    assert world.journal().execute(shadow, 1, 0, written(create)) == DONE
    state = store.state_of(store.catalog.load(shadow))
    assert (state.done, state.decided) == (frozenset({"1.0"}), made.decided)
