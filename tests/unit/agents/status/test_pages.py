from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from shardmerge.agents.status import pages
from shardmerge.agents.status.view import StatusView
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import (
    Decision,
    JoinedSchema,
    Outcome,
    Release,
    StatementKind,
    TargetStatement,
)
from shardmerge.schemas.records.progress import (
    FailureProgress,
    ShardProgress,
    SinkProgress,
    StatementProgress,
)
from shardmerge.schemas.records.schema_changes import ChangeId

TARGET = TargetTable("merged", "tbl")
ONE, TWO = ShardId("s1", "shop", "tbl00"), ShardId("s2", "shop", "tbl02")
ID = ShardColumn("ID#1", Column("ID", ColumnType("int"), nullable=False))
LEVEL = ShardColumn("Level#1", Column("Level", ColumnType("int", unsigned=True)))
EVIL = "<script>alert('x')</script>\"&"


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
    assert "FLUSH TABLES" in pages.index_page(view, "demo", caught_up=True)


class Tags(HTMLParser):
    """Every tag that a browser would see, and unclosed ones."""

    VOID = frozenset(("meta", "br"))

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def full_view(text: str) -> StatusView:
    column = ShardColumn("x#1", Column(text, ColumnType("int")))
    table = TargetTable("merged", text)
    shard = ShardId("s1", "shop", text)
    statement = TargetStatement(text, StatementKind.EXPANDING, text, ("table",))
    return viewed(
        decision(1, shard, Outcome.EMIT, target=table, statements=(statement,), ddl=text),
        decision(2, shard, Outcome.HOLD, target=table, reason=text, hint=text, warnings=(text,)),
        JoinedSchema(table, 2, (column,), TableSchema((column.column,)), 1),
        SinkProgress(
            table,
            1,
            1234,
            (StatementProgress(2, 0, text, StatementKind.CONTRACTING, "refused", text),),
            (ShardProgress(shard, 5, text, text, SourcePosition(0, text, 1, 0), 0, 0, 4_321),),
            failure=FailureProgress(text, text, text, 12, 1_000),
        ),
        decision(0, shard, Outcome.IGNORED, target=None, ddl=text, reason=text),
    )


@pytest.mark.parametrize("text", [EVIL, "a`b", "数据"])
def test_every_page_is_well_formed_and_shows_foreign_text_as_text(text):
    view = full_view(text)
    (target,) = view.targets()
    for page in (
        pages.index_page(view, "demo", caught_up=True),
        pages.target_page(target, "demo", caught_up=False),
        pages.missing_page(text, "demo", caught_up=True),
    ):
        tags = Tags()
        tags.feed(page)
        assert tags.open == []
        assert "script" not in tags.seen


def test_the_page_tells_what_the_sink_does():
    page = pages.index_page(full_view("ALTER 1"), "demo", caught_up=True)
    assert "1,234 rows applied" in page
    assert "refused" in page
    assert "parked shard" in page
    assert "The rows of ALTER 1 cannot be applied: ALTER 1" in page
    assert "12 tries in a row failed, since 1970-01-01 00:00:01 UTC" in page
    assert "rows written over others" in page
    assert "4,321" in page


def test_a_page_says_nothing_of_shards_that_overwrite_nothing():
    record = SinkProgress(TargetTable("merged", "t"), 1, 5, (), (ShardProgress(ONE, 5),))
    page = pages.index_page(viewed(record), "demo", caught_up=True)
    assert "5 rows applied" in page
    assert "written over" not in page


def test_an_empty_pipeline_says_what_it_waits_for():
    assert "No decision yet" in pages.index_page(StatusView(), "demo", caught_up=True)
    assert "not complete yet" in pages.index_page(StatusView(), "demo", caught_up=False)


def test_the_json_twin_holds_what_the_page_shows():
    view = full_view("x")
    (target,) = pages.status_json(view, "demo", caught_up=True)["targets"]
    assert target["target"] == "merged.x"
    assert [s["state"] for s in target["shards"]] == ["held"]
    assert target["progress"]["rows"] == 1234
    assert target["progress"]["failure"]["times"] == 12
    assert target["progress"]["shards"][0]["overwritten"] == 4_321
    assert [d["version"] for d in target["decisions"]] == [2, 1]
