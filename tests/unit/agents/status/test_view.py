from __future__ import annotations

from dataclasses import replace

from shardmerge.agents.status.view import SinksView, StatusView
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Decision, JoinedSchema, Outcome, Release
from shardmerge.schemas.records.progress import SinkProgress
from shardmerge.schemas.records.schema_changes import ChangeId

TARGET = TargetTable("merged", "tbl")
ONE, TWO = ShardId("s1", "shop", "tbl00"), ShardId("s2", "shop", "tbl02")
ID = ShardColumn("ID#1", Column("ID", ColumnType("int"), nullable=False))
LEVEL = ShardColumn("Level#1", Column("Level", ColumnType("int", unsigned=True)))


def decision(version: int, shard: ShardId, outcome: Outcome = Outcome.NOOP, **fields) -> Decision:
    values = {
        "id": ChangeId(shard.source, version),
        "target": TARGET,
        "version": version,
        "shard": shard,
        "position": SourcePosition(0, "binlog.000001", version * 10, 0),
        "outcome": outcome,
        "reason": f"reason {version}",
        "columns": (ID,),
        **fields,
    }
    return Decision(**values)


def joined(version: int, *columns: ShardColumn) -> JoinedSchema:
    schema = TableSchema(tuple(c.column for c in columns))
    return JoinedSchema(TARGET, version, columns, schema, 2)


def viewed(*records) -> StatusView:
    view = StatusView()
    for record in records:
        view.apply(record)
    return view


def test_a_column_that_a_live_shard_lacks_is_partial():
    view = viewed(decision(1, ONE, columns=(ID, LEVEL)), decision(2, TWO), joined(2, ID, LEVEL))
    (target,) = view.targets()
    assert [(c.name, c.partial, c.missing_on) for c in target.columns] == [
        ("ID", False, ()),
        ("Level", True, (TWO,)),
    ]


def test_a_held_shard_shows_reason_place_and_remedy_until_it_is_released():
    hold = decision(2, ONE, Outcome.HOLD, reason="types differ", hint="go back", columns=())
    view = viewed(decision(1, ONE), hold)
    (shard,) = view.targets()[0].held
    assert (shard.reason, shard.hint, str(shard.position)) == (
        "types differ", "go back", "binlog.000001:20",
    )  # fmt: skip
    view.apply(decision(3, TWO, releases=(Release(ONE, 2),)))
    assert view.targets()[0].held == ()


def test_a_held_shard_counts_with_its_columns_before_the_conflict():
    hold = decision(2, ONE, Outcome.HOLD, columns=(ID, LEVEL))
    (target,) = viewed(decision(1, ONE), hold, joined(2, ID, LEVEL)).targets()
    assert [c.partial for c in target.columns] == [False, True]


def test_a_shard_that_left_is_no_longer_live():
    (target,) = viewed(decision(1, ONE), decision(2, ONE, live=False, columns=())).targets()
    assert [s.state for s in target.shards] == ["left"]
    assert target.live == ()


def test_a_shard_that_was_taken_out_is_no_longer_live_until_it_changes():
    records = [
        decision(1, ONE),
        decision(2, TWO),
        replace(decision(3, TWO, leaves=(TWO,)), shard=None),
    ]
    (target,) = viewed(*records).targets()
    assert {s.shard: s.state for s in target.shards} == {ONE: "live", TWO: "left"}
    (target,) = viewed(*records, decision(4, TWO)).targets()
    assert {s.shard for s in target.live} == {ONE, TWO}


def test_repeated_records_change_nothing():
    records = [decision(1, ONE), decision(2, TWO), joined(2, ID)]
    once, twice = viewed(*records), viewed(*records, *records)
    assert once.targets() == twice.targets()


def test_what_concerns_no_shard_is_listed_apart():
    ignored = decision(0, ONE, Outcome.IGNORED, target=None, ddl="FLUSH TABLES")
    view = viewed(ignored, ignored)
    assert view.targets() == ()
    assert [d.ddl for d in view.ignored()] == ["FLUSH TABLES"]


def test_a_released_shard_counts_with_the_columns_of_its_held_change():
    hold = decision(2, ONE, Outcome.HOLD, columns=(ID, LEVEL))
    view = viewed(decision(1, ONE), hold, joined(2, ID, LEVEL))
    assert view.targets()[0].columns[1].missing_on == (ONE,)
    view.apply(decision(3, TWO, columns=(ID, LEVEL), releases=(Release(ONE, 2),)))
    assert view.targets()[0].columns[1].missing_on == ()


def test_a_release_that_leaves_columns_out_does_not_count_them():
    hold = decision(2, ONE, Outcome.HOLD, columns=(ID, LEVEL))
    view = viewed(decision(1, ONE), hold, joined(2, ID, LEVEL))
    view.apply(decision(3, TWO, columns=(ID, LEVEL), releases=(Release(ONE, 2, ("Level#1",)),)))
    assert view.targets()[0].columns[1].missing_on == (ONE,)
    (one, _) = view.targets()[0].shards
    assert [c.id for c in one.columns] == ["ID#1", ""]


def test_a_paused_shard_tells_since_when_it_is_paused():
    pause = replace(decision(2, ONE, pauses=(ONE,), ts_ms=500), shard=None)
    view = viewed(decision(1, ONE, ts_ms=100), pause)
    assert [(s.state, s.ts_ms) for s in view.targets()[0].shards] == [("paused", 500)]
    view.apply(replace(decision(3, ONE, resumes=(ONE,), ts_ms=900), shard=None))
    assert [(s.state, s.ts_ms) for s in view.targets()[0].shards] == [("live", 100)]


def test_equal_columns_of_shards_are_one_object():
    one, two = (
        decision(n, s, columns=(replace(ID), replace(LEVEL))) for n, s in ((1, ONE), (2, TWO))
    )
    first, second = viewed(one, two).targets()[0].shards
    assert first.columns is second.columns


def test_every_record_that_is_shown_raises_the_revision():
    view = viewed(decision(1, ONE))
    before = view.revision
    view.apply(SinkProgress(TARGET, 1, 5))
    assert view.revision > before


def test_the_latest_report_tells_where_the_sinks_run():
    view, other = StatusView(), TargetTable("merged", "other")
    assert view.sinks() is None
    view.apply(SinkProgress(TARGET, 1, 5, ts_ms=2000, writer="db2"))
    view.apply(SinkProgress(other, 1, 5, ts_ms=1000, writer="db1", standbys=("db2",)))
    assert view.sinks() == SinksView("db2", (), 2000)
    view.apply(SinkProgress(other, 1, 5, ts_ms=3000, writer="db2", standbys=("db1", "db3")))
    assert view.sinks() == SinksView("db2", ("db1", "db3"), 3000)
    view.apply(SinkProgress(TARGET, 1, 5, ts_ms=4000))
    assert view.sinks() is None
