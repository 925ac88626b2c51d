"""The Iceberg side of a rebuild: the shadow's state, the swap, and what is left when one ends."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardmerge.cli.rebuild.rebuild_lake import RebuildLake
from shardmerge.schemas.model.errors import ConfigError, StackError, TargetClosed, TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.drift import DriftKind
from shardmerge.spark_sink.barrier.closing import Closing, Marks
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from shardmerge.spark_sink.planning.ranges import TaskFailure
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord, Stage, shadow_table
from shardmerge.spark_sink.targets.iceberg import rebuild_swap
from shardmerge.spark_sink.targets.iceberg.maintenance import Maintenance
from shardmerge.spark_sink.targets.iceberg.tables import IcebergTable, Uncertain
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget
from tests.strategies import table
from tests.target_statements import written

from .contract import Contract, IcebergKind, Writer

# py4j leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Rebuilt:
    """A target with rows that somebody has changed, and one rebuild of it."""

    def __init__(self, contract: Contract, kind: IcebergKind, warehouse: Path) -> None:
        self.contract, self.kind, self._warehouse = contract, kind, warehouse
        self.target, self.name = contract.target, f"lake.{contract.target.sql}"
        self.writer = contract.start()
        made = contract.create()
        self.writer.execute(1, made)
        self.writer.journal.note(self.target, 1, -2, "rows were taken out")
        contract.topic.produce([contract.insert(id=n, v="a", n=n) for n in range(6)])
        self.writer.apply()
        # An id of a column that is gone: the shadow's columns need the same ids.
        self.writer.execute(2, contract.add("w int"))
        self.writer.execute(3, contract.drop("n"))
        kind.execute(f"UPDATE {self.name} SET v = 'by hand' WHERE id < 3")
        kind.execute(f"DELETE FROM {self.name} WHERE id = 4")
        lake = kind.open(contract.pipeline)
        assert isinstance(lake, IcebergTarget)
        self.server = RebuildLake(SinkSettings(Path()), contract.pipeline, self.target, lake)

    @property
    def store(self) -> Any:
        return self.writer.target.state

    def begun(self) -> RebuildRecord:
        number = self.server.store.next_number()
        control = self.contract.pipeline.target.control_database
        shadow = shadow_table(control, number, self.target)
        schema = table("create table t (v varchar(20), id int not null primary key, w int)")
        creation = written(of_shadow(self.contract, shadow, schema=schema).create())
        record = RebuildRecord(
            number, self.target, Stage.BUILDING, 3, (creation,), control, "olga", "now"
        )  # fmt: skip
        load = Load(self.contract.shard, record.shadow.table, 3, LoadKind.CHUNKS, 3)
        self.server.store.begin(record, [load])
        return record

    def fill(self, record: RebuildRecord, rows: str = "('r', 1, 10), ('r', 2, 20)") -> Writer:
        """What the shadow's sink does."""
        settings, name = SinkSettings(Path()), record.sink_name(self.contract.name)
        own = IcebergTarget(
            settings, self.contract.pipeline, self.kind.spark, state_name=name,
            shadow=record.shadow.table,
        )  # fmt: skip
        own.state.prepare()
        filling = Writer(of_shadow(self.contract, record.shadow.table), own, own.state.take_epoch())
        assert filling.change(1, record.creation[0]).state == "done"
        shadow = f"lake.{record.shadow.table.sql}"
        self.kind.execute(f"INSERT INTO {shadow} (v, id, w) VALUES {rows}")
        self.kind.execute(f"DELETE FROM {shadow} WHERE id = 1")
        self.kind.execute(f"INSERT INTO {shadow} (v, id, w) VALUES ('s', 3, NULL)")
        return filling

    def files(self) -> set[str]:
        """Every data file of the target and of shadows."""
        return {
            path.name
            for path in self._warehouse.rglob("*.parquet")
            if self.contract.name in str(path)
        }

    def folders(self) -> list[str]:
        return sorted(
            path.name for path in self._warehouse.iterdir() if f"{self.contract.name}_" in path.name
        )

    def rows(self, at: str = "") -> list[tuple[Any, ...]]:
        found = self.kind.session.sql(f"SELECT id, v, w FROM {self.name}{at} ORDER BY id")
        return [tuple(row) for row in found.collect()]

    def snapshots(self) -> int:
        return int(self.kind.session.sql(f"SELECT * FROM {self.name}.snapshots").count())

    def drift(self) -> dict[str, DriftKind]:
        """What a look of the sink finds, with what it keeps from earlier ones."""
        lake = self.kind.open(self.contract.pipeline)
        assert isinstance(lake, IcebergTarget)
        known = lake.drift.load().get(self.target, ())
        found = lake.comparer().compare(self.target, known).differences
        return {each.subject: each.kind for each in found}

    def unknown_manifests(self) -> set[str]:
        """Files beside the target's metadata that no snapshot has."""
        folder = self._warehouse / self.target.database / self.target.table / "metadata"
        known = {
            str(row[0]).rsplit("/", maxsplit=1)[-1]
            for what in ("path FROM {}.all_manifests", "manifest_list FROM {}.snapshots")
            for row in self.kind.session.sql(f"SELECT {what.format(self.name)}").collect()
        }
        return {path.name for path in folder.glob("*.avro")} - known

    def exchanged(self, record: RebuildRecord) -> RebuildRecord:
        swapping = replace(record, stage=Stage.SWAPPING)
        self.server.store.keep(swapping)
        self.server.close_for_swap()
        self.server.swap.exchange(swapping)
        return swapping


def of_shadow(contract: Contract, shadow: TargetTable, **more: Any) -> Contract:
    """The contract, for writers of the shadow."""
    other = copy(contract)
    other.__dict__.update(more, target=shadow)
    return other


@pytest.fixture
def rebuilt(contract: Contract, kind: IcebergKind, warehouse: Path) -> Iterator[Rebuilt]:
    made = Rebuilt(contract, kind, warehouse)
    yield made
    made.server.close()


def test_the_sink_of_this_version_must_have_run(contract: Contract, kind: IcebergKind) -> None:
    lake = kind.open(contract.pipeline)
    assert isinstance(lake, IcebergTarget)
    server = RebuildLake(SinkSettings(Path()), contract.pipeline, contract.target, lake)
    with pytest.raises(StackError) as unknown:
        server.check_sink()
    assert unknown.value.code == "SM-6513"
    contract.start()
    server.check_sink()


def test_the_target_gets_the_shadow_s_rows_columns_and_state_at_once(rebuilt: Rebuilt) -> None:
    record, before = rebuilt.begun(), rebuilt.rows()
    own = rebuilt.server.store.of_shadow(record)
    place = Partition(rebuilt.contract.topic.topic, 0)
    assert own.offsets() == rebuilt.store.offsets() and own.offsets()[place] > 0
    assert rebuilt.server.store.latest(rebuilt.target) == record
    assert rebuilt.server.store.is_begun(record)
    filling = rebuilt.fill(record)
    # Both follow a statement; the target a row, too.
    assert rebuilt.writer.execute(4, rebuilt.contract.add("z int")).state == "done"
    assert rebuilt.server.store.statements_behind(record) == 1
    assert filling.execute(4, filling.contract.add("z int")).state == "done"
    assert rebuilt.server.store.statements_behind(record) == 0
    begun_at = own.offsets()[place]
    rebuilt.writer.move((0, begun_at, begun_at + 2))
    assert rebuilt.server.store.events_behind(record) == 2
    filling.move((0, begun_at, begun_at + 2))
    assert rebuilt.server.store.events_behind(record) == 0

    files = rebuilt.files()
    swapping = rebuilt.exchanged(record)
    assert rebuilt.rows() == [(2, "r", 20), (3, "s", None)]
    assert rebuilt.contract.columns() == ["v", "id", "w", "z"]
    assert rebuilt.rows(" VERSION AS OF 'shardmerge_old_1'") == before
    assert rebuilt.server.swap.is_exchanged(swapping)
    assert rebuilt.store.marks() == Marks({rebuilt.target: Closing.SWAPPING}, 0)
    rebuilt.server.swap.exchange(swapping)  # again, after a crash
    swapped = rebuilt.server.swap.take_over(swapping)
    assert swapped.stage is Stage.SWAPPED
    assert rebuilt.store.marks() == Marks({}, 1)
    assert files <= rebuilt.files()
    assert rebuilt.folders() == [f"{rebuilt.contract.name}_control"]
    # The writer from before changes nothing any more; a new one goes on.
    with pytest.raises(TargetClosed):
        rebuilt.writer.execute(5, rebuilt.contract.add("y int"))
    writer = rebuilt.contract.start()
    assert set(writer.journal.load()) == {
        (rebuilt.target, version, ordinal)
        for version, ordinal in ((1, 0), (1, -2), (2, 0), (3, 0), (4, 0))
    }
    assert writer.target.state.offsets()[place] == begun_at + 2
    [load] = writer.target.loads.loads()
    assert (load.target, load.shard) == (rebuilt.target, rebuilt.contract.shard)
    assert writer.execute(5, rebuilt.contract.add("y int")).state == "done"
    rebuilt.kind.execute(f"DELETE FROM {rebuilt.name} WHERE id = 2")
    assert rebuilt.rows() == [(3, "s", None)]

    assert rebuilt.server.swap.drop_old(swapped).stage is Stage.ENDED
    lake = rebuilt.kind.open(rebuilt.contract.pipeline)
    assert isinstance(lake, IcebergTarget)
    Maintenance(SinkSettings(Path()), rebuilt.contract.pipeline, lake).expire(1, 0)
    assert rebuilt.rows() == [(3, "s", None)]
    assert len(rebuilt.files()) < len(files)


def test_a_closed_target_is_changed_by_nobody(rebuilt: Rebuilt) -> None:
    contract, writer = rebuilt.contract, rebuilt.writer
    contract.topic.produce([contract.insert(id=9, v="late", n=1)])
    task = writer.task()
    before = rebuilt.rows()
    rebuilt.server.close_for_swap()
    [failure] = writer.run(task)
    assert isinstance(failure, TaskFailure) and failure.code == "SM-6510", failure
    with pytest.raises(TargetError) as closed:
        writer.execute(4, contract.add("z int"))
    assert closed.value.retryable and closed.value.code == "SM-6510"
    # A sink that starts meanwhile waits, too.
    later = contract.start()
    with pytest.raises(TargetError):
        later.move((0, 6, 7))
    assert rebuilt.rows() == before
    rebuilt.server.reopen()
    assert later.execute(4, contract.add("z int")).state == "done"


def test_an_abort_leaves_no_trace_whenever_it_comes(
    rebuilt: Rebuilt, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, files, folders = rebuilt.rows(), rebuilt.files(), rebuilt.folders()

    def is_as_before(aborted: RebuildRecord) -> None:
        assert aborted.stage is Stage.ABORTED
        assert (rebuilt.rows(), rebuilt.files(), rebuilt.folders()) == (rows, files, folders)
        assert rebuilt.store.marks() == Marks({}, 0)
        table = rebuilt.kind.iceberg().load(rebuilt.target)
        assert not any("rebuild" in key for key in table.properties())
        assert (
            snapshots == rebuilt.kind.session.sql(f"SELECT * FROM {rebuilt.name}.snapshots").count()
        )

    snapshots = rebuilt.kind.session.sql(f"SELECT * FROM {rebuilt.name}.snapshots").count()
    record = rebuilt.begun()
    is_as_before(rebuilt.server.swap.drop_shadow(record))
    # Killed while it begins: the record is there, the shadow is not whole.
    record = replace(record, number=2)
    rebuilt.server.store.keep(record)
    assert not rebuilt.server.store.is_begun(record)
    is_as_before(rebuilt.server.swap.drop_shadow(record))
    # Killed between the staged snapshot and the commit.
    record = rebuilt.begun()
    rebuilt.fill(record)

    def killed(place: str) -> None:
        raise KeyboardInterrupt(place)

    with monkeypatch.context() as patch:
        patch.setattr(rebuild_swap, "reach", killed)
        with pytest.raises(KeyboardInterrupt, match="exchange-staged"):
            rebuilt.exchanged(record)
    assert not rebuilt.server.swap.is_exchanged(record)
    assert rebuilt.rows() == rows
    is_as_before(rebuilt.server.swap.drop_shadow(record))
    with pytest.raises(TargetError):
        rebuilt.server.swap.exchange(record)
    assert rebuilt.writer.execute(4, rebuilt.contract.add("z int")).state == "done"


def test_a_swap_that_was_killed_or_not_answered_is_completed(
    rebuilt: Rebuilt, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = rebuilt.begun()
    rebuilt.fill(record)
    commit = IcebergTable.commit
    answers = iter([False])

    def unanswered(self: IcebergTable, *args: Any, **more: Any) -> None:
        commit(self, *args, **more)
        if more.get("publish") is not None and not next(answers, True):
            raise Uncertain

    with monkeypatch.context() as patch:
        patch.setattr(IcebergTable, "commit", unanswered)
        swapping = rebuilt.exchanged(record)
    assert next(answers, None) is None
    assert rebuilt.rows() == [(2, "r", 20), (3, "s", None)]
    with pytest.raises(ConfigError) as late:
        rebuilt.server.swap.drop_shadow(swapping)
    assert late.value.code == "SM-6514"
    # Killed within the last step: the shadow is gone, the record does not say so.
    rebuilt.kind.iceberg().drop(record.shadow.table, with_files=False)
    assert rebuilt.server.swap.take_over(swapping).stage is Stage.SWAPPED
    assert rebuilt.rows() == [(2, "r", 20), (3, "s", None)]
    assert rebuilt.folders() == [f"{rebuilt.contract.name}_control"]


def test_a_commit_of_somebody_else_in_between_is_replaced_by_the_new_rows(
    rebuilt: Rebuilt, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = rebuilt.begun()
    rebuilt.fill(record)
    others = iter([f"INSERT INTO {rebuilt.name} (id, v) VALUES (77, 'late')"])

    def meanwhile(place: str) -> None:
        for sql in others:
            rebuilt.kind.execute(sql)

    with monkeypatch.context() as patch:
        patch.setattr(rebuild_swap, "reach", meanwhile)
        rebuilt.exchanged(record)
    assert rebuilt.rows() == [(2, "r", 20), (3, "s", None)]
    assert (77, "late", None) in rebuilt.rows(" VERSION AS OF 'shardmerge_old_1'")
    assert rebuilt.unknown_manifests() == set()


def test_after_a_swap_nothing_is_drift_and_what_comes_later_is(rebuilt: Rebuilt) -> None:
    kind, name = rebuilt.kind, rebuilt.name
    kind.execute(f"ALTER TABLE {name} ADD COLUMN by_hand int")
    kind.execute(f"ALTER TABLE {name} DROP COLUMN w")
    lake = kind.open(rebuilt.contract.pipeline)
    assert isinstance(lake, IcebergTarget)
    before = lake.comparer().compare(rebuilt.target).differences
    lake.drift.keep(rebuilt.writer.epoch, rebuilt.target, before)
    assert set(rebuilt.drift()) == {"rows", "column:by_hand", "column:w"}
    record = rebuilt.begun()
    rebuilt.fill(record)
    old = kind.iceberg().load(rebuilt.target).snapshot_id
    rebuilt.server.swap.take_over(rebuilt.exchanged(record))
    assert rebuilt.drift() == {}
    assert rebuilt.rows() == [(2, "r", 20), (3, "s", None)]
    # Who names the new snapshot sees its columns, too.
    new = kind.iceberg().load(rebuilt.target).snapshot_id
    assert rebuilt.rows(f" VERSION AS OF {new}") == rebuilt.rows()
    kind.execute(f"CALL lake.system.rollback_to_snapshot('{rebuilt.target.sql}', {old})")
    assert rebuilt.drift() == {"rollback": DriftKind.VALUES}
    kind.execute(f"CALL lake.system.set_current_snapshot('{rebuilt.target.sql}', {new})")
    kind.execute(f"INSERT INTO {name} (v, id) VALUES ('nobody', 7)")
    assert rebuilt.drift() == {"rows": DriftKind.VALUES}


def test_a_sink_that_missed_two_swaps_begins_where_the_last_one_ended(rebuilt: Rebuilt) -> None:
    for number in (1, 2):
        record = rebuilt.begun()
        assert record.number == number
        rebuilt.fill(record, f"('r{number}', 1, 10), ('r{number}', 2, 20)")
        swapped = rebuilt.server.swap.take_over(rebuilt.exchanged(record))
        assert rebuilt.server.swap.drop_old(swapped).stage is Stage.ENDED
    assert rebuilt.rows() == [(2, "r2", 20), (3, "s", None)]
    writer = rebuilt.contract.start()
    assert writer.execute(4, rebuilt.contract.add("z int")).state == "done"
    rebuilt.contract.schema = table("create table t (id int primary key, v varchar(20), w int)")
    rebuilt.contract.topic.produce([rebuilt.contract.insert(id=9, v="b", w=1)])
    assert writer.apply().hold is None
    assert (9, "b", 1) in rebuilt.rows()
    assert rebuilt.drift() == {}


def test_a_partitioned_table_is_not_rebuilt(rebuilt: Rebuilt) -> None:
    def partitioned(do: str) -> None:
        rebuilt.kind.execute(f"ALTER TABLE {rebuilt.name} {do} PARTITION FIELD bucket(4, id)")

    partitioned("ADD")
    with pytest.raises(TargetError) as refused:
        rebuilt.begun()
    assert refused.value.code == "SM-6529"
    assert rebuilt.server.store.latest(rebuilt.target) is None
    partitioned("DROP")
    record, before = rebuilt.begun(), rebuilt.rows()
    rebuilt.fill(record)
    partitioned("ADD")
    with pytest.raises(TargetError, match="is partitioned"):
        rebuilt.exchanged(record)
    assert rebuilt.rows() == before
    partitioned("DROP")
    rebuilt.server.swap.take_over(rebuilt.exchanged(record))
    assert rebuilt.rows() == [(2, "r", 20), (3, "s", None)]
