"""Where a connector goes on that has stopped within a transaction."""

from __future__ import annotations

from typing import Any

import pytest

from shardmerge.cli.moving.resumption import NewBinlog, Resumption, resumption
from shardmerge.connectors.binlog.binlog_events import RowsEvent
from shardmerge.connectors.binlog.source_offset import SourceOffset
from tests.unit.cli.moving.test_move_rules import A, B

BEGUN, OWN = f"{A}:10", f"{B}:1"
BEHIND = Resumption({"file": "b.7", "pos": 4, "gtids": f"{A}:1-10"})
STAYS = Resumption()


def at(event: int, row: int) -> SourceOffset:
    values: dict[str, Any] = {"file": "b.7", "pos": 4, "gtids": f"{A}:1-9", "event": event}
    return SourceOffset({**values, "row": row})


def event(index: int, table: str = "app.t") -> RowsEvent:
    return RowsEvent("b.1", 100 * index, 100 * index + 99, 4, index, BEGUN, table)


def found(offset: SourceOffset, first: str, *events: RowsEvent, rows: int | None = 3) -> Resumption:
    return resumption(offset, BEGUN, NewBinlog(first, events), lambda _: rows)


@pytest.mark.parametrize("first", [BEGUN, OWN])
def test_a_transaction_that_is_delivered_counts_as_read(first: str) -> None:
    assert found(at(4, 3), first, event(2), event(4)) == BEHIND
    assert found(at(5, 0), first, event(2), event(4)) == BEHIND


@pytest.mark.parametrize("offset", [at(4, 2), at(2, 3), at(3, 0)])
def test_in_the_middle_of_a_transaction_only_it_may_come_first(offset: SourceOffset) -> None:
    assert found(offset, BEGUN, event(2), event(4)) == STAYS
    assert f"has {OWN} before it" in found(offset, OWN, event(2), event(4)).obstacle


def test_other_events_than_at_the_server_before_are_an_obstacle() -> None:
    assert "other events" in found(at(3, 1), BEGUN, event(2), event(4)).obstacle
    assert "other events" in found(at(6, 1), BEGUN, event(2), event(4)).obstacle


def test_events_that_are_compressed_are_not_counted() -> None:
    assert found(at(4, 3), BEGUN, event(1, table="")) == STAYS
    assert found(at(4, 3), OWN, event(1, table="")).obstacle


def test_an_event_whose_rows_cannot_be_counted_may_have_more() -> None:
    assert found(at(4, 3), BEGUN, event(2), event(4), rows=None) == STAYS
    assert found(at(4, 3), OWN, event(2), event(4), rows=None).obstacle


def test_where_no_row_is_delivered_the_transaction_is_read_from_its_beginning() -> None:
    told = resumption(at(2, 0), "", NewBinlog(), lambda _: 0)
    assert told == Resumption({"file": "b.7", "pos": 4, "gtids": f"{A}:1-9"})
