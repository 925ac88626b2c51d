"""What a binlog tells of a place in it, and the offsets that go on there."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.connectors.binlog.binlog_events import BinlogEvent
from shardmerge.connectors.binlog.gtid_place import (
    NO_GTIDS,
    Place,
    first_anonymous,
    offset_by_gtid,
    offset_by_place,
    place_at,
    reads_by_position,
)
from shardmerge.connectors.binlog.gtids import MySqlGtids, gtids_of
from shardmerge.connectors.binlog.source_offset import SourceOffset
from tests.unit.connectors.binlog.test_binlog_events import ANONYMOUS, FILE, GTID, UUID, lines

BEGIN = (("Format_desc", "Server ver: 8.0.15"), ("Previous_gtids", f"{UUID}:1-3"))
ROWS = (
    ("Query", "BEGIN"),
    ("Table_map", "table_id: 91 (a.t)"),
    ("Write_rows", "table_id: 91 flags: STMT_END_F"),
    ("Xid", "COMMIT /* xid=41 */"),
)
DDL = (("Query", "use `a`; ALTER TABLE t ADD b INT"),)
# From 100 on, each of 100 bytes: rows without a GTID at 300, rows with one at 800, a DDL at 1300.
FILE_OF_BOTH = lines(
    *BEGIN,
    ("Anonymous_Gtid", ANONYMOUS),
    *ROWS,
    ("Gtid", GTID % 4),
    *ROWS,
    ("Gtid", GTID % 5),
    *DDL,
)
END = FILE_OF_BOTH[-1].end


MARK = ":9223372036854775806-1"


def gtids(numbers: str) -> MySqlGtids:
    found = gtids_of(f"{UUID}:{numbers}")
    assert isinstance(found, MySqlGtids)
    return found


@pytest.mark.parametrize(
    ("pos", "read", "is_within_anonymous"),
    [
        (300, "1-3", False),
        (400, "1-3", True),
        (500, "1-3", True),
        (700, "1-3", True),
        (800, "1-3", False),
        (900, "1-3", False),
        (1200, "1-3", False),
        (1300, "1-4", False),
        (1400, "1-4", False),
        (1500, "1-5", False),
    ],
)
def test_a_transaction_is_read_at_a_place_where_it_is_over(
    pos: int, read: str, is_within_anonymous: bool
) -> None:
    assert END == 1500
    for behind in ((), lines(*BEGIN, file="binlog.000002")):
        found = place_at([*FILE_OF_BOTH, *behind], FILE, pos)
        assert found == Place(gtids(read), is_within_anonymous)


@pytest.mark.parametrize("last", ["Rotate", "Stop"])
def test_a_transaction_is_over_where_its_file_ends(last: str) -> None:
    events = lines(*BEGIN, ("Gtid", GTID % 4), *ROWS, (last, "binlog.000002;pos=4"))
    assert place_at(events, FILE, events[-1].pos) == Place(gtids("1-4"), False)
    assert place_at(events, FILE, events[-1].end) == Place(gtids("1-4"), False)


def test_at_the_beginning_of_a_file_is_read_what_is_in_those_before() -> None:
    events = lines(("Format_desc", ""), ("Previous_gtids", f"{UUID}:1-3,\n{UUID}:tag:7"))
    read = place_at(events, FILE, events[-1].end).read
    assert str(read) == f"{UUID}:1-3,{UUID}:tag:7"
    assert place_at(lines(("Format_desc", ""), ("Previous_gtids", "")), FILE, 300).read == NO_GTIDS
    assert place_at([], FILE, 4) == Place(NO_GTIDS, False)


def test_no_more_is_read_of_the_binlog_than_up_to_the_place() -> None:
    events = iter(FILE_OF_BOTH)
    place_at(events, FILE, 800)
    assert next(events).pos == 900


def test_the_first_transaction_without_a_gtid_is_found() -> None:
    found = first_anonymous(iter(FILE_OF_BOTH))
    assert found is not None and (found.file, found.pos) == (FILE, 300)
    assert first_anonymous([e for e in FILE_OF_BOTH if e.pos >= 800]) is None


@given(st.lists(st.booleans(), max_size=8), st.data())
def test_the_places_of_a_binlog_tell_more_and_more(kinds: list[bool], data: st.DataObject) -> None:
    told: list[tuple[str, str]] = [*BEGIN]
    for number, is_named in enumerate(kinds, 4):
        told.append(("Gtid", GTID % number) if is_named else ("Anonymous_Gtid", ANONYMOUS))
        told += data.draw(st.sampled_from((ROWS, DDL)))
    events = lines(*told)
    places = [
        place_at(events, FILE, pos).read for pos in (*(e.pos for e in events), events[-1].end)
    ]
    assert all(one.within(other) for one, other in pairwise(places[2:]))
    wanted = [gtids(str(n)) for n, is_named in enumerate(kinds, 4) if is_named]
    assert places[-1].count == 3 + len(wanted)
    assert all(gtid.within(places[-1]) for gtid in wanted)


# --- offsets --------------------------------------------------------------------------------------


def offset(numbers: str, **more: Any) -> SourceOffset:
    values: dict[str, Any] = {"file": FILE, "pos": 1300, "ts_sec": 5, **more}
    return SourceOffset({**values, "gtids": f"{UUID}:{numbers}"} if numbers else values)


PLACE = Place(gtids("1-9"), False)
EXECUTED = gtids("1-20")


def test_an_offset_by_gtid_has_what_it_had_and_what_its_place_is_behind() -> None:
    found = offset_by_gtid(offset(f"1-2:12{MARK}", event=2, row=1), PLACE)
    assert found.values == offset("1-9:12", event=2, row=1).values
    assert not found.is_by_place
    assert offset_by_gtid(offset(""), PLACE).values == offset("1-9").values


def test_an_offset_by_place_is_marked_and_stays_as_it_is() -> None:
    found = offset_by_place(offset("1-2:12", event=2), PLACE, EXECUTED)
    assert found.values == offset(f"1-9:12{MARK}", event=2).values
    assert found.is_by_place and found.read_gtids is None
    assert offset_by_place(found, PLACE, EXECUTED).values == found.values


def test_an_offset_without_a_gtid_is_marked_when_its_server_has_one() -> None:
    nothing = Place(NO_GTIDS, False)
    assert offset_by_place(offset(""), nothing, NO_GTIDS).values == offset("").values
    found = offset_by_place(offset(""), nothing, EXECUTED)
    assert found.values["gtids"] == UUID + MARK
    assert found.is_by_place and found.gtids is None
    assert offset_by_gtid(found, nothing).values == offset("").values


@pytest.mark.parametrize(
    ("numbers", "is_behind"), [("1-9", False), ("1-8", False), ("1-7", True), ("3-9", True)]
)
def test_by_gtid_an_offset_lacks_one_transaction_at_most(numbers: str, is_behind: bool) -> None:
    assert reads_by_position(offset(numbers), PLACE) is is_behind


def test_an_event_of_another_file_ends_the_file() -> None:
    begun = lines(*BEGIN, ("Gtid", GTID % 4), *ROWS)
    other = BinlogEvent("binlog.000002", 4, "Gtid", 7, 100, GTID % 9)
    assert place_at([*begun, other], FILE, begun[-1].end).read == gtids("1-4")
