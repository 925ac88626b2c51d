"""Which statement failed, and what is not delivered before it."""

from __future__ import annotations

import pytest

from shardmerge.connectors.binlog.binlog_events import Logged, RowsEvent, Statement
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.repair.diagnosis.undelivered import (
    Delivered,
    Gap,
    first_unread,
    gap_before,
    is_failed_statement,
    lost_statements,
    not_read,
)

UUID = "84ffc6e9-e7f5-11f1-b328-02fc00000001"
FILE = "binlog.000001"


def offset(pos: int, read: str = "", event: int = 0, row: int = 0, **more: bool) -> SourceOffset:
    gtids = {"gtids": f"{UUID}:{read}"} if read else {}
    values = {"file": FILE, "pos": pos, "event": event, "row": row, **gtids}
    return SourceOffset(values, **more)


def statement(pos: int, number: int = 0, sql: str = "ALTER TABLE t ADD url INT") -> Statement:
    return Statement(FILE, pos, pos + 50, f"{UUID}:{number}" if number else "", "app", sql)


def rows(
    pos: int, number: int = 0, begin: int = 0, index: int = 2, table: str = "app.t"
) -> RowsEvent:
    gtid = f"{UUID}:{number}" if number else ""
    return RowsEvent(FILE, pos, pos + 50, begin or pos - 100, index, gtid, table)


# --- which statement -----------------------------------------------------------------------------


def test_a_told_text_names_the_statement_however_it_is_spaced() -> None:
    failed = statement(900, sql="ALTER TABLE t\n  ADD url\tINT ;")
    for told in ("ALTER TABLE t ADD url INT", "ALTER  TABLE t\r\nADD url INT;"):
        assert is_failed_statement(failed, told, Delivered())
    assert not is_failed_statement(failed, "ALTER TABLE t ADD url BIGINT", Delivered())


def test_a_told_text_counts_although_the_statement_was_read_once() -> None:
    delivered = Delivered(positions=frozenset({(FILE, 900)}))
    assert is_failed_statement(statement(900), "ALTER TABLE t ADD url INT", delivered)


@pytest.mark.parametrize(
    "delivered",
    [
        Delivered(gtids={f"{UUID}:7": (FILE, 900)}, positions=frozenset({(FILE, 900)})),
        Delivered(recorded=frozenset({(FILE, 950)})),
    ],
)
def test_without_a_text_the_first_statement_that_was_not_read_failed(delivered: Delivered) -> None:
    assert not is_failed_statement(statement(900, 7), "", delivered)
    assert is_failed_statement(statement(990, 8), "", delivered)


def test_with_gtids_a_statement_is_delivered_by_its_gtid() -> None:
    delivered = Delivered(
        gtids={f"{UUID}:7": (FILE, 900)}, positions=frozenset({(FILE, 900), (FILE, 100)})
    )
    assert delivered.has(statement(900, 7))
    # Another server's binlog can have something else at that place.
    assert not delivered.has(statement(100, 8))
    assert delivered.has(statement(100)) and not delivered.has(statement(200))


def test_a_record_that_is_lost_is_read_but_not_delivered() -> None:
    delivered = Delivered(recorded=frozenset({(FILE, 950)}))
    assert delivered.is_read(statement(900, 7)) and not delivered.has(statement(900, 7))
    assert not delivered.is_read(statement(950, 8))


# --- where to begin -------------------------------------------------------------------------------


def test_without_gtids_the_binlog_is_read_from_the_offset() -> None:
    delivered = Delivered(gtids={f"{UUID}:7": (FILE, 100)})
    assert first_unread(offset(900), delivered) == (FILE, 900, "")
    assert first_unread(offset(900, "1-6", by_gtid=False), delivered) == (FILE, 900, "")


def test_a_delivered_statement_that_comes_again_is_read_from_its_begin() -> None:
    delivered = Delivered(
        gtids={f"{UUID}:{n}": (FILE, pos) for n, pos in ((5, 100), (7, 850), (8, 870), (9, 990))}
    )
    assert first_unread(offset(900, "1-6"), delivered) == (FILE, 850, f"{UUID}:7")
    assert first_unread(offset(900, "1-6:7-8"), delivered) == (FILE, 900, "")
    assert first_unread(offset(900, "1-9"), Delivered()) == (FILE, 900, "")


def test_what_was_read_is_told_by_gtids() -> None:
    items: list[Logged] = [statement(800, 5), rows(900, 6), statement(1000, 7), rows(1100, 9)]
    assert list(not_read(items, offset(1050, "1-5:7"))) == [items[1], items[3]]


def test_what_was_read_is_told_by_the_place_without_gtids() -> None:
    items: list[Logged] = [statement(800), rows(900), statement(1000)]
    assert list(not_read(items, offset(900))) == items[1:]
    assert list(not_read(items, offset(900, "1-9"))) == items[1:]
    named: list[Logged] = [statement(800, 5), rows(900, 6)]
    assert list(not_read(named, offset(900))) == named[1:]
    assert list(not_read(named, offset(900, "1-9", by_gtid=False))) == named[1:]


# --- what is missing ------------------------------------------------------------------------------

FAILED = statement(2000, 9)


def test_nothing_between_is_no_gap() -> None:
    assert gap_before(FAILED, [FAILED], offset(1950, "1-8"), Delivered(), None) == Gap()


def test_rows_behind_the_offset_are_missing() -> None:
    ahead: list[Logged] = [rows(1100, 7), rows(1300, 8, table="app.u"), FAILED, rows(2200, 10)]
    at = offset(1000, "1-6")
    assert gap_before(FAILED, ahead, at, Delivered(), None) == Gap(missing=tuple(ahead[:2]))
    assert gap_before(FAILED, ahead, at, Delivered(), {"app.t"}) == Gap(missing=(ahead[0],))
    assert gap_before(FAILED, ahead, at, Delivered(), set()) == Gap()


def test_rows_of_a_table_that_is_not_told_may_be_any_tables() -> None:
    ahead: list[Logged] = [rows(1100, 7, table=""), FAILED]
    assert gap_before(FAILED, ahead, offset(1000, "1-6"), Delivered(), set()).missing == (ahead[0],)


def test_of_a_transaction_that_is_under_way_its_delivered_events_are_not_missing() -> None:
    begun = [rows(1100 + 100 * n, 7, begin=1000, index=n) for n in (2, 4, 5)]
    ahead: list[Logged] = [*begun, rows(1900, 8, begin=1800, index=2), FAILED]
    gap = gap_before(FAILED, ahead, offset(1000, "1-6", event=4, row=3), Delivered(), None)
    assert gap == Gap(missing=(begun[2], ahead[3]), partial=begun[1])
    gap = gap_before(FAILED, ahead, offset(1000, "1-6", event=5), Delivered(), None)
    assert gap == Gap(missing=(begun[2], ahead[3]))
    gap = gap_before(FAILED, ahead, offset(1000, "1-6", event=6), Delivered(), None)
    assert gap == Gap(missing=(ahead[3],))


def test_an_event_of_which_rows_are_delivered_matters_only_for_its_table() -> None:
    begun = rows(1200, 7, begin=1000, index=2, table="app.u")
    at = offset(1000, "1-6", event=2, row=1)
    assert gap_before(FAILED, [begun, FAILED], at, Delivered(), {"app.t"}) == Gap()
    assert gap_before(FAILED, [begun, FAILED], at, Delivered(), {"app.u"}) == Gap(partial=begun)


def test_statements_whose_records_are_delivered_are_passed_and_others_missing() -> None:
    first, second = statement(1100, 7), statement(1300, 8)
    recorded = frozenset({first.recorded, second.recorded})
    delivered = Delivered(gtids={first.gtid: (FILE, 1100)}, recorded=recorded)
    gap = gap_before(FAILED, [first, second, FAILED], offset(1000, "1-6"), delivered, set())
    assert gap == Gap(missing=(second,), passed=(first,))


def test_on_mariadb_an_offset_at_a_statement_is_not_within_the_rows_behind_it() -> None:
    """Measured, 10.11: behind a statement ``event`` is 1, and grows as long as all is quiet."""
    passed = Statement(FILE, 1637, 1736, "0-102-8", "app", "alter table t add b int", begin=1595)
    behind = RowsEvent(FILE, 1885, 1933, 1736, 2, "0-102-9", "app.t")
    failed = Statement(
        FILE, 2006, 2105, "0-102-10", "app", "alter table t add auto int", begin=1964
    )
    at = SourceOffset({"file": FILE, "pos": 1595, "gtids": "0-102-7", "event": 8})
    delivered = Delivered(gtids={"0-102-8": (FILE, 1637)})
    ahead: list[Logged] = [passed, behind, failed]
    assert gap_before(failed, ahead, at, delivered, None) == Gap((behind,), passed=(passed,))


def test_on_mariadb_a_statement_is_read_when_its_transactions_begin_is_recorded() -> None:
    read = Statement(FILE, 1637, 1736, "0-102-8", "app", "alter table t add b int", begin=1595)
    assert Delivered(recorded=frozenset({(FILE, 1595)})).is_read(read)
    assert not Delivered(recorded=frozenset({(FILE, 1736)})).is_read(read)


@pytest.mark.parametrize("sql", ["GRANT SELECT ON *.* TO a@b", "ANALYZE TABLE t"])
def test_a_statement_of_which_debezium_tells_nothing_is_not_missing(sql: str) -> None:
    ahead: list[Logged] = [statement(1100, 7, sql), FAILED]
    assert gap_before(FAILED, ahead, offset(1000, "1-6"), Delivered(), None) == Gap()


@pytest.mark.parametrize(
    "sql", ["TRUNCATE t", "truncate table t", "SET STATEMENT a=1 FOR TRUNCATE t"]
)
def test_a_truncate_is_missing_until_the_offset_is_its_own(sql: str) -> None:
    emptied = Statement(FILE, 1142, 1200, "0-1-7", "app", sql, begin=1100)
    before, behind = (
        SourceOffset({"file": FILE, "pos": pos, "gtids": "0-1-6", "event": event})
        for pos, event in ((1100, 0), (1100, 1))
    )
    assert gap_before(FAILED, [emptied, FAILED], before, Delivered(), None).missing == (emptied,)
    assert gap_before(FAILED, [emptied, FAILED], behind, Delivered(), None) == Gap()


def test_what_the_connector_does_not_read_is_not_missing() -> None:
    """Without MySQL's GTIDs every row counts, but of tables that are not captured none comes."""
    emptied = statement(1300, sql="TRUNCATE TABLE t")
    ahead: list[Logged] = [rows(1100, table="other.t"), emptied, rows(1500), FAILED]
    gap = gap_before(
        FAILED, ahead, offset(1000), Delivered(), None, comes=lambda item: item == ahead[2]
    )
    assert gap == Gap(missing=(ahead[2],))
    begun = [rows(1100, begin=1000, table="other.t"), rows(1400, begin=1300)]
    gap = gap_before(
        FAILED, begun, offset(1000, event=4), Delivered(), None, comes=lambda item: item == begun[1]
    )
    assert gap == Gap(missing=(begun[1],)), "what is delivered of a transaction is of its own"


def test_lost_records_of_statements_are_told_where_nothing_else_is_missing() -> None:
    first, second = statement(1100, 7), statement(1300, 8)
    emptied = statement(1500, 9, "TRUNCATE t")
    assert lost_statements(Gap(missing=(first, second), passed=(emptied,))) == (first, second)
    assert lost_statements(Gap()) == ()
    # Rows before a statement must be there before its record is, and a TRUNCATE is among rows.
    assert lost_statements(Gap(missing=(rows(1000, 6), first))) == ()
    assert lost_statements(Gap(missing=(first,), partial=rows(1000, 6))) == ()
    assert lost_statements(Gap(missing=(first, emptied))) == ()
