"""Whose keys can be equal although messages have them as different ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.schemas.records.decisions import Decision
from shardmerge.spark_sink.barrier.collation_keys import is_collation_key
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.partitions import Stream
from tests.unit.spark_sink.decided import TARGET, A, B, decision, folded

A_STREAM, B_STREAM = Stream("s1.app.a"), Stream("s1.app.b")


def text(collation: str = "", name: str = "varchar", charset: str = "utf8mb4") -> ColumnType:
    return ColumnType(name, 20, charset=charset, collation=collation)


BY_COLLATION = text("utf8mb4_0900_ai_ci")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ColumnType("int"), False),
        (BY_COLLATION, True),
        (text("utf8mb4_0900_ai_ci", "char"), True),
        (text("utf8mb4_0900_as_cs"), True),
        (text(), True),
        (text("", charset=""), True),
        (text("utf8mb4_bin"), True),
        (text("utf8mb4_bin", "text"), True),
        (text("utf8mb4_bin", "char"), False),
        (text("utf8mb4_0900_bin"), False),
        (text("utf8mb4_nopad_bin"), False),
        (text(charset="binary"), False),
        (text("binary", charset=""), False),
        (ColumnType("varbinary", 20), False),
        (ColumnType("blob"), True),
        (ColumnType("float"), True),
        (ColumnType("double"), True),
        (ColumnType("decimal", 9, 2), False),
        (ColumnType("enum", charset="utf8mb4", elements=("a", "b")), False),
        (ColumnType("datetime", fsp=6), False),
    ],
)
def test_a_type_makes_a_collation_key_when_equal_values_can_be_different_bytes(
    kind: ColumnType, expected: bool
) -> None:
    assert is_collation_key(kind) is expected


def keyed(version: int, *key: str, live: bool = True, **kinds: ColumnType) -> Decision:
    """A decision of shard A; columns beginning with ``_`` are origin columns."""
    columns = tuple(
        ShardColumn("@shard" if name.startswith("_") else f"{name}#1", Column(name, kind))
        for name, kind in kinds.items()
    )
    return replace(decision(version, A, 10 * version, live=live), columns=columns, key=key)


def ordered(*records: Decision) -> set[Stream]:
    return set(folded(*records).ordered_streams)


def test_a_shard_without_a_primary_key_is_ordered() -> None:
    assert ordered(keyed(1, id=ColumnType("int")), decision(2, B, 20)) == {A_STREAM}


def test_one_column_makes_a_collation_key_of_several() -> None:
    assert ordered(keyed(1, "id", "t", id=ColumnType("int"), t=BY_COLLATION)) == {A_STREAM}


def test_columns_outside_of_the_key_do_not_matter() -> None:
    assert ordered(keyed(1, "id", id=ColumnType("int"), t=BY_COLLATION)) == set()


def test_origin_columns_in_the_key_do_not_matter() -> None:
    assert ordered(keyed(1, "_shard", "id", id=ColumnType("int"), _shard=BY_COLLATION)) == set()


def test_a_key_of_origin_columns_alone_is_none() -> None:
    assert ordered(keyed(1, "_shard", id=ColumnType("int"), _shard=BY_COLLATION)) == {A_STREAM}


@pytest.mark.parametrize("key", [(), ("id",)])
def test_a_gate_without_known_columns_says_nothing(key: tuple[str, ...]) -> None:
    assert ordered(keyed(1, *key)) == set()


def test_the_gate_of_a_dropped_shard_says_nothing() -> None:
    dropped = keyed(2, live=False, id=ColumnType("int"))
    assert ordered(decision(1, A, 10), dropped) == set()


def test_a_shard_that_was_ordered_once_stays_so() -> None:
    known = folded(keyed(1, "id", id=BY_COLLATION), keyed(2, "id", id=ColumnType("int")))
    assert set(known.ordered_streams) == {A_STREAM}
    assert known.targets[TARGET].shards[A].needs_order


def test_a_shard_becomes_ordered_with_a_later_gate() -> None:
    known = folded(keyed(1, "id", id=ColumnType("int")), decision(2, B, 20))
    assert set(known.ordered_streams) == set()
    known.add(keyed(3, "id", id=BY_COLLATION))
    assert set(known.ordered_streams) == {A_STREAM}
    assert not known.targets[TARGET].shards[B].needs_order


def test_a_decision_behind_a_gap_does_not_count_yet() -> None:
    known = folded(keyed(2, "id", id=BY_COLLATION))
    assert set(known.ordered_streams) == set()
    known.add(decision(1, B, 10))
    assert set(known.ordered_streams) == {A_STREAM}


def test_an_ordered_shard_of_a_shared_topic_leaves_the_others_alone() -> None:
    route = RoutingRule(".*", "app", "[ab]", "merged", "t", row_topic="merged.t")
    known = Decisions(RowTopics([route]))
    known.add(keyed(1, "id", id=BY_COLLATION))
    known.add(decision(2, B, 20))
    assert set(known.ordered_streams) == {Stream("merged.t", A)}
