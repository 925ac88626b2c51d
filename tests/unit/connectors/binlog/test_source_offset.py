"""A connector's offset."""

from __future__ import annotations

import pytest

from shardmerge.connectors.binlog.gtids import MySqlGtids, gtids_of
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.position import SourcePosition

UUID = "84ffc6e9-e7f5-11f1-b328-02fc00000001"
MEASURED = SourceOffset(
    {
        "ts_sec": 1795517894,
        "file": "binlog.000001",
        "pos": 1665317,
        "gtids": f"{UUID}:1-5245",
        "row": 1,
        "server_id": 102,
        "event": 2,
    }
)


def test_an_offset_tells_where_a_transaction_is_under_way() -> None:
    assert (MEASURED.file, MEASURED.pos) == ("binlog.000001", 1665317)
    assert (MEASURED.event, MEASURED.row) == (2, 1)
    assert str(MEASURED.gtids) == f"{UUID}:1-5245"
    assert MEASURED.position == SourcePosition(0, "binlog.000001", 1665317, 0)
    assert not MEASURED.is_snapshot


def test_what_an_offset_does_not_tell_is_nothing() -> None:
    bare = SourceOffset({})
    assert (bare.file, bare.pos, bare.event, bare.row, bare.gtids) == ("", 0, 0, 0, None)
    null = SourceOffset({"file": None, "pos": None, "gtids": None, "row": None, "event": None})
    assert (null.file, null.pos, null.event, null.row, null.gtids) == ("", 0, 0, 0, None)


@pytest.mark.parametrize("mark", ["INITIAL", "true", True])
def test_a_snapshot_under_way_is_told(mark: object) -> None:
    assert SourceOffset({"file": "b.1", "pos": 4, "snapshot": mark}).is_snapshot


def test_gtids_that_cannot_be_read_are_told_with_where_to_look() -> None:
    with pytest.raises(ContractError, match=r"cannot be read: 'what' is no GTID set") as caught:
        _ = SourceOffset({"gtids": "what"}).gtids
    assert "/offsets" in caught.value.hint


def test_a_transaction_that_is_left_out_moves_nothing_else() -> None:
    later = MEASURED.with_gtid(f"{UUID}:5247")
    assert later.values == {**MEASURED.values, "gtids": f"{UUID}:1-5245:5247"}
    assert later.with_gtid(f"{UUID}:5246").values["gtids"] == f"{UUID}:1-5247"


def test_an_interval_that_ends_before_it_begins_says_that_gtids_are_of_before() -> None:
    tagged = gtids_of(f"{UUID}:1-5,{UUID}:tag:1-3")
    assert isinstance(tagged, MySqlGtids)
    marked = MEASURED.with_gtids(tagged, UUID)
    text = f"{UUID}:1-5,{UUID}:tag:1-3:9223372036854775806-1"
    assert marked.values == {**MEASURED.values, "gtids": text}
    assert marked.is_by_place and not MEASURED.is_by_place
    assert marked.gtids == tagged and marked.read_gtids is None
    assert marked.with_gtids(tagged).read_gtids == tagged
    bare = MEASURED.with_gtids(MySqlGtids({}), UUID)
    assert bare.is_by_place and bare.gtids is None
    assert bare.values["gtids"] == f"{UUID}:9223372036854775806-1"


@pytest.mark.parametrize("text", [f"{UUID}:10-20", f"{UUID}:1-100:203", "0-1-100", ""])
def test_no_number_of_a_server_looks_like_that(text: str) -> None:
    assert not SourceOffset({"gtids": text}).is_by_place


def test_an_offset_of_which_nothing_has_a_gtid_has_none() -> None:
    assert "gtids" not in MEASURED.with_gtids(MySqlGtids({})).values


def test_without_gtids_no_transaction_can_be_left_out() -> None:
    with pytest.raises(ValueError, match="has no GTIDs"):
        SourceOffset({"file": "b.1", "pos": 4}).with_gtid(f"{UUID}:1")


def test_an_offset_that_is_moved_is_at_the_beginning_of_a_transaction() -> None:
    moved = MEASURED.moved_to("binlog.000002", 900, f"{UUID}:5246")
    assert (moved.file, moved.pos, moved.event, moved.row) == ("binlog.000002", 900, 0, 0)
    assert moved.values == {
        "ts_sec": 1795517894,
        "file": "binlog.000002",
        "pos": 900,
        "gtids": f"{UUID}:1-5246",
        "server_id": 102,
    }


def test_an_offset_is_moved_without_gtids_as_well() -> None:
    bare = SourceOffset({"file": "b.000001", "pos": 4, "event": 3})
    assert bare.moved_to("b.000001", 99).values == {"file": "b.000001", "pos": 99}
    assert bare.moved_to("b.000001", 99, f"{UUID}:1").values == {"file": "b.000001", "pos": 99}
    assert MEASURED.moved_to("b.000001", 99).values["gtids"] == f"{UUID}:1-5245"


def test_the_keys_of_a_snapshot_of_single_tables_stay() -> None:
    values = {"file": "b.1", "pos": 4, "incremental_snapshot_collections": "[]"}
    assert SourceOffset(values).moved_to("b.1", 8).values == {**values, "pos": 8}
    assert SourceOffset({**values, "gtids": f"{UUID}:1"}).with_gtid(f"{UUID}:2").values == {
        **values,
        "gtids": f"{UUID}:1-2",
    }
