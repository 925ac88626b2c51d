"""The target's side of a rebuild: the shadow's state, the swap, and what is left when one ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardmerge.cli.cutover.target_server import TargetServer
from shardmerge.cli.rebuild.rebuild_server import RebuildServer
from shardmerge.schemas.model.errors import ConfigError, StackError, TargetClosed, WriterReplaced
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision, Outcome, StatementKind, TargetStatement
from shardmerge.schemas.records.drift import DriftKind
from shardmerge.schemas.records.earlier_statements import actions_of
from shardmerge.schemas.records.schema_changes import ChangeId
from shardmerge.spark_sink.barrier.closing import Closing
from shardmerge.spark_sink.barrier.decisions import StatementKey, TargetDecisions
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from shardmerge.spark_sink.planning.ranges import Advance
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord, Stage
from shardmerge.spark_sink.rebuilding.route_changes import ChangedOrigin
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.ddl.compared_tables import TableComparer
from shardmerge.spark_sink.targets.mysql.ddl.journal import Journal
from shardmerge.spark_sink.targets.mysql.load_store import LoadStore
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.stage_store import StageStore
from shardmerge.spark_sink.targets.shadow_merges import shadow_merge
from tests.breadth import with_further

from .compared_line import S1, TARGET, pipeline

ROWS, LATER = Partition("s1.app.t_1", 0), Partition("s1.app.t_1", 1)
OTHER = TargetTable("merged", "other")
OF_ANOTHER = "staged_0123456789abcdef_0"
"""The table of a snapshot that another sink reads."""
APART = Origin((OriginColumn(OriginPart.SHARD, "_shard"),), in_keys=True)
SETTINGS = SinkSettings(Path())
CHECK = "CONSTRAINT few CHECK (id < 1000)"


def moved(
    topic: str, partition: int, start: int, end: int, target: TargetTable, *, rows: int = 0
) -> Advance:
    return Advance(topic, partition, start, end, target, rows, rows, 0)


def ddl(sql: str) -> TargetStatement:
    return TargetStatement(sql, StatementKind.EXPANDING, "", ("table",), actions=actions_of(sql))


def as_decided(_: Pipeline, record: RebuildRecord) -> Callable[[Decision], Decision]:
    """Stands for the decisions of a shadow that has its own."""
    assert record.origin is not None
    return lambda decision: decision


class Rebuilt:
    """A pipeline's target with rows, and one rebuild of it."""

    def __init__(self, pipeline: Pipeline) -> None:
        where, self.pipeline = pipeline.target, pipeline
        address = MySqlAddress.of(where)
        self.session = MySqlSession(address, lock_wait_timeout_s=1)
        for number in (1, 2):
            self.run(
                f"DROP DATABASE IF EXISTS shardmerge_new_{number}",
                f"DROP DATABASE IF EXISTS shardmerge_old_{number}",
            )
        self.run("DROP DATABASE IF EXISTS merged", "DROP DATABASE IF EXISTS shardmerge")
        self.server = RebuildServer(self.pipeline, TARGET)
        self.control = self.control_of(self.pipeline.name)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.session.execute(statement)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return self.session.query(sql)

    def control_of(self, name: str) -> ControlStore:
        return ControlStore(self.session, self.pipeline.target.control_database, name)

    def begun(self) -> RebuildRecord:
        """The target at version 1, and a rebuild whose shadow exists at the same version."""
        self.control.prepare()
        epoch = self.control.take_epoch()
        made = ddl(f"CREATE TABLE {TARGET.sql} (`id` int NOT NULL, PRIMARY KEY (`id`), {CHECK})")
        assert self.journal(self.pipeline.name, epoch).execute(TARGET, 1, 0, made).state == "done"
        self.journal(self.pipeline.name, epoch).note(TARGET, 1, -2, "rows were taken out")
        self.control.move(
            epoch,
            [
                moved("s1.app.t_1", 0, 0, 50, TARGET, rows=7),
                moved("s1.app.other", 0, 0, 9, OTHER, rows=3),
            ],
        )
        self.run(f"INSERT INTO {TARGET.sql} VALUES (1)")
        number = self.server.store.next_number()
        shadow = TargetTable(f"shardmerge_new_{number}", "t")
        creation = ddl(made.sql.replace(TARGET.sql, shadow.sql))
        record = RebuildRecord(
            number, TARGET, Stage.BUILDING, 1, (creation,), "shardmerge", "olga", "now"
        )
        self.server.store.begin(record, [Load(S1, shadow, 1, LoadKind.SNAPSHOT, 1)])
        own = self.control_of(self.name(record))
        self.epoch = own.take_epoch()
        done = self.journal(self.name(record), self.epoch).execute(shadow, 1, 0, creation)
        assert done.state == "done"
        self.run(f"INSERT INTO {shadow.sql} VALUES (1), (2)")
        return record

    def begun_again(self, record: RebuildRecord) -> RebuildRecord:
        """Another rebuild of the same target."""
        number = self.server.store.next_number()
        again = replace(record, number=number, stage=Stage.BUILDING, where=None, where_before="")
        self.server.store.begin(again, [])
        return again

    def journal(self, name: str, epoch: int) -> Journal:
        return Journal(self.session, self.control_of(name), name, epoch)

    def name(self, record: RebuildRecord) -> str:
        return record.sink_name(self.pipeline.name)

    def close(self) -> None:
        self.session.close()
        self.server.close()


@pytest.fixture(params=with_further("mariadb1011", "mysql97"))
def rebuilt(request: pytest.FixtureRequest, server_port: Callable[[str], int]) -> Iterator[Rebuilt]:
    port = server_port(str(request.param))
    found = Rebuilt(pipeline(port, port, maria="target" if "maria" in request.param else ""))
    yield found
    found.close()


def test_the_shadow_s_sink_begins_where_the_target_stands(rebuilt: Rebuilt) -> None:
    with pytest.raises(StackError) as unknown:
        rebuilt.server.check_sink()
    assert unknown.value.code == "SM-6513"
    record = rebuilt.begun()
    rebuilt.server.check_sink()
    own = rebuilt.control_of(rebuilt.name(record))
    assert own.offsets() == {ROWS: 50}, "not those of other targets"
    assert own.rows() == {record.shadow.table: 0}
    executed = rebuilt.server.executed(rebuilt.name(record), record.shadow.table)
    assert executed == {StatementKey(1, 0), StatementKey(1, -2)}
    assert [load.shard for load in rebuilt.server.store.loads(record)] == [S1]
    assert rebuilt.server.store.latest(TARGET) == record
    merge = shadow_merge(SETTINGS, rebuilt.pipeline, TARGET, as_decided)
    assert (merge.state_name, merge.shadow) == (rebuilt.name(record), record.shadow)
    assert all(source.is_loaded for source in merge.pipeline.sources)
    server = TargetServer(rebuilt.pipeline, TARGET)
    with pytest.raises(ConfigError, match="is under way"):
        server.check_no_rebuild()
    server.close()


def test_a_changed_condition_is_the_shadow_s_and_after_the_swap_the_target_s(
    rebuilt: Rebuilt,
) -> None:
    route = RoutingRule(".*", "app", "t_.*", TARGET.database, TARGET.table, where="id < 9")
    rebuilt.pipeline = replace(rebuilt.pipeline, routes=(route,))

    def in_force() -> str:
        [rule] = rebuilt.server.in_force(rebuilt.pipeline).routes
        return rule.where

    def of_shadow() -> str:
        [rule] = shadow_merge(SETTINGS, rebuilt.pipeline, TARGET, as_decided).pipeline.routes
        return rule.where

    record = replace(rebuilt.begun(), where="id < 5", where_before="id < 9")
    rebuilt.server.store.keep(record)
    assert (in_force(), of_shadow()) == ("id < 9", "id < 5")
    rebuilt.server.marks.close_for_swap()
    rebuilt.server.swap.exchange(record)
    assert in_force() == "id < 9"
    swapped = rebuilt.server.swap.take_over(record)
    assert in_force() == "id < 5"
    rebuilt.server.swap.drop_old(swapped)
    again = rebuilt.begun_again(record)
    assert (in_force(), of_shadow()) == ("id < 5", "id < 5")
    rebuilt.server.store.keep(replace(again, where="", where_before="id < 5"))
    assert (in_force(), of_shadow()) == ("id < 5", "")
    rebuilt.server.swap.drop_shadow(again)
    assert in_force() == "id < 5"


def test_what_the_target_has_and_the_shadow_has_not_is_counted(rebuilt: Rebuilt) -> None:
    record, store = rebuilt.begun(), rebuilt.server.store
    assert (store.events_behind(record), store.statements_behind(record)) == (0, 0)
    epoch = rebuilt.control.epoch()
    rebuilt.control.move(
        epoch, [moved("s1.app.t_1", 0, 50, 60, TARGET), moved("s1.app.t_1", 1, 0, 5, TARGET)]
    )
    added = ddl(f"ALTER TABLE {TARGET.sql} ADD COLUMN `a` int")
    rebuilt.journal(rebuilt.pipeline.name, epoch).execute(TARGET, 2, 0, added)
    assert (store.events_behind(record), store.statements_behind(record)) == (15, 1)
    own, shadow = rebuilt.control_of(rebuilt.name(record)), record.shadow.table
    own.move(rebuilt.epoch, [moved("s1.app.t_1", 0, 50, 80, shadow)])
    assert store.events_behind(record) == 5


def test_the_tables_change_places_with_all_that_belongs_to_them(rebuilt: Rebuilt) -> None:
    record, server = rebuilt.begun(), rebuilt.server
    shadow, own = record.shadow.table, rebuilt.control_of(rebuilt.name(record))
    own.move(
        rebuilt.epoch,
        [
            moved("s1.app.t_1", 0, 50, 70, shadow, rows=2),
            moved("s1.app.t_1", 1, 0, 4, shadow, rows=4),
        ],
    )
    added = ddl(f"ALTER TABLE {shadow.sql} ADD COLUMN `a` int")
    rebuilt.journal(rebuilt.name(record), rebuilt.epoch).execute(shadow, 2, 0, added)
    _stage(rebuilt, record)
    loads = LoadStore(rebuilt.session, "shardmerge", rebuilt.name(record))
    [one] = loads.loads()
    loads.keep(one, one.plan())
    # An earlier version has begun the rebuild.
    rebuilt.run("ALTER TABLE shardmerge.load_chunks DROP COLUMN attempt")
    server.marks.close_for_swap()
    assert rebuilt.control.closed_targets() == {TARGET: Closing.SWAPPING}
    assert not server.is_cut_over()
    with (
        pytest.raises(TargetClosed, match="takes the target's place"),
        rebuilt.session.transaction(),
    ):
        rebuilt.control.fence(rebuilt.control.epoch(), TARGET)
    assert (server.swap.is_exchanged(record), rebuilt.control.marks().swaps) == (False, 0)
    for _ in range(2):  # a call that was killed behind it repeats it
        server.swap.exchange(record)
        assert server.swap.is_exchanged(record)
    swapped = server.swap.take_over(record)
    assert server.store.latest(TARGET) == swapped == replace(record, stage=Stage.SWAPPED)

    assert rebuilt.control.marks().swaps == record.number
    assert rebuilt.control.closed_targets() == {}
    assert rebuilt.control.offsets() == {ROWS: 70, LATER: 4, Partition("s1.app.other", 0): 9}
    assert rebuilt.control.rows() == {TARGET: 13, OTHER: 3}
    [load] = LoadStore(rebuilt.session, "shardmerge", rebuilt.pipeline.name).loads()
    assert (load.shard, load.target, len(load.chunks)) == (S1, TARGET, 1)
    executed = server.executed(rebuilt.pipeline.name, TARGET)
    assert executed == {StatementKey(1, 0), StatementKey(1, -2), StatementKey(2, 0)}
    compared = server.decided_table(TargetDecisions(TARGET), ())
    assert compared is not None
    assert [column.name for column in compared.columns] == ["id", "a"]
    assert rebuilt.query(f"SELECT id, a FROM {TARGET.sql}") == [(1, None), (2, None)]
    assert rebuilt.query(f"SELECT * FROM {record.old.sql}") == [(1,)]
    # The names of CHECK constraints are as they were, so a later statement can drop this one.
    [(_, definition)] = rebuilt.query(f"SHOW CREATE TABLE {TARGET.sql}")
    # A TiDB takes CHECK constraints, and has none by default.
    assert "CONSTRAINT `few`" in definition or rebuilt.pipeline.target.kind == "tidb"
    _is_forgotten(rebuilt, record)

    assert server.swap.drop_old(swapped).stage is Stage.ENDED
    assert rebuilt.control.marks().swaps == record.number
    assert rebuilt.query("SHOW DATABASES LIKE 'shardmerge\\_%\\_%'") == []


def test_a_table_with_decisions_of_its_own_leaves_the_target_s_journal(rebuilt: Rebuilt) -> None:
    begun, server = rebuilt.begun(), rebuilt.server
    record = replace(begun, origin=APART)
    server.store.keep(record)
    shadow, epoch = record.shadow.table, rebuilt.control.epoch()
    added = ddl(f"ALTER TABLE {TARGET.sql} ADD COLUMN `a` int")
    assert rebuilt.journal(rebuilt.pipeline.name, epoch).execute(TARGET, 2, 0, added).error == ""
    for action in ("ADD COLUMN `a` int", "ADD COLUMN `_shard` varchar(9) NOT NULL DEFAULT 's1'"):
        rebuilt.run(f"ALTER TABLE {shadow.sql} {action}")
    rebuilt.run(f"ALTER TABLE {shadow.sql} DROP PRIMARY KEY, ADD PRIMARY KEY (`id`, `_shard`)")
    server.marks.close_for_swap()
    server.swap.exchange(record)
    created = ddl(
        f"CREATE TABLE {TARGET.sql} (`id` int NOT NULL, `a` int, `_shard` varchar(9) NOT NULL"
        f" DEFAULT 's1', PRIMARY KEY (`id`, `_shard`), {CHECK})"
    )
    renewal = Decision(
        ChangeId("p.commands", 5), TARGET, 3, None, BEGINNING, Outcome.EMIT, (created,),
        origin=APART,
    )  # fmt: skip
    swapped = server.swap.take_over(record, renewal)
    assert server.store.latest(TARGET) == swapped == replace(record, stage=Stage.SWAPPED)
    executed = server.executed(rebuilt.pipeline.name, TARGET)
    assert executed == {StatementKey(v, o) for v, o in ((1, 0), (1, -2), (2, 0), (3, 0))}
    table = server.decided_table(TargetDecisions(TARGET), ())
    assert table is not None
    assert [column.name for column in table.columns] == ["id", "a", "_shard"]
    compared = TableComparer(
        rebuilt.session, rebuilt.control.table("ddl_journal"), rebuilt.pipeline.name
    ).compare(TARGET)
    assert [each for each in compared.differences if each.kind is not DriftKind.HARMLESS] == []
    assert rebuilt.control.route_changes() == [ChangedOrigin(TARGET, NO_ORIGIN, APART)]
    _is_forgotten(rebuilt, record)


def test_a_task_of_the_shadow_s_sink_that_is_left_writes_nothing(rebuilt: Rebuilt) -> None:
    record = rebuilt.begun()
    rebuilt.server.marks.close_for_swap()
    rebuilt.server.swap.exchange(record)
    rebuilt.server.swap.take_over(record)
    own = rebuilt.control_of(rebuilt.name(record))
    with pytest.raises(Exception, match="another writer took over"), rebuilt.session.transaction():
        own.fence(rebuilt.epoch, record.shadow.table)


def test_a_task_that_was_planned_for_the_table_before_writes_nothing_into_the_new_one(
    rebuilt: Rebuilt,
) -> None:
    record, epoch = rebuilt.begun(), rebuilt.control.epoch()
    rebuilt.server.marks.close_for_swap()
    rebuilt.server.swap.exchange(record)
    rebuilt.server.swap.take_over(record)
    with pytest.raises(WriterReplaced), rebuilt.session.transaction():
        rebuilt.control.fence(epoch, TARGET)
    assert rebuilt.control.epoch() == epoch + 1


def test_an_aborted_rebuild_opens_the_target_and_leaves_nothing(rebuilt: Rebuilt) -> None:
    record = rebuilt.begun()
    _stage(rebuilt, record)
    rebuilt.run(f"CREATE TABLE shardmerge.{OF_ANOTHER} (n INT)")
    rebuilt.server.marks.close_for_swap()
    assert rebuilt.server.swap.drop_shadow(record).stage is Stage.ABORTED
    assert rebuilt.control.closed_targets() == {}
    assert rebuilt.control.offsets()[ROWS] == 50
    assert rebuilt.query(f"SELECT * FROM {TARGET.sql}") == [(1,)]
    assert rebuilt.query("SHOW DATABASES LIKE 'shardmerge\\_%\\_%'") == []
    _is_forgotten(rebuilt, record)
    assert rebuilt.query(f"SELECT * FROM shardmerge.{OF_ANOTHER}") == []
    with pytest.raises(ConfigError) as found:
        shadow_merge(SETTINGS, rebuilt.pipeline, TARGET, as_decided)
    assert found.value.code == "SM-6501"
    assert rebuilt.server.store.next_number() == record.number + 1


def test_what_somebody_put_beside_the_shadow_stays(rebuilt: Rebuilt) -> None:
    record = rebuilt.begun()
    database = record.shadow.table.database
    rebuilt.run(f"CREATE TABLE {database}.mine (id INT)")
    rebuilt.server.swap.drop_shadow(record)
    assert rebuilt.query(f"SHOW TABLES FROM {database}") == [("mine",)]


def test_a_table_with_a_trigger_is_not_moved_and_the_target_stays(rebuilt: Rebuilt) -> None:
    record = rebuilt.begun()
    rebuilt.run(f"CREATE TRIGGER merged.x BEFORE INSERT ON {TARGET.sql} FOR EACH ROW"
            " SET @x = 1")  # fmt: skip
    with pytest.raises(Exception, match=r"(?i)trigger"):
        rebuilt.server.swap.exchange(record)
    assert not rebuilt.server.swap.is_exchanged(record)
    assert rebuilt.query(f"SELECT * FROM {TARGET.sql}") == [(1,)]


def _stage(rebuilt: Rebuilt, record: RebuildRecord) -> None:
    """A snapshot is being read for the shadow; the table of an earlier attempt is there, too."""
    stages = StageStore(rebuilt.session, "shardmerge", rebuilt.name(record))
    [load] = rebuilt.server.store.loads(record)
    for _ in range(2):
        stages.register(load, stage := stages.new_name(S1))
        stages.make(stage, [("c0", "int")])


def _is_forgotten(rebuilt: Rebuilt, record: RebuildRecord) -> None:
    tables = rebuilt.query(
        "SELECT TABLE_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'shardmerge'"
        " AND COLUMN_NAME = 'pipeline'",
    )
    assert len(tables) > 8
    for (table,) in tables:
        name = rebuilt.name(record)
        left = f"SELECT COUNT(*) FROM shardmerge.{table} WHERE pipeline = '{name}'"
        assert rebuilt.query(left) == [(0,)], table
    stages = rebuilt.query(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shardmerge'"
        " AND TABLE_NAME LIKE 'staged\\_%'"
    )
    assert [name for (name,) in stages if name != OF_ANOTHER] == []
