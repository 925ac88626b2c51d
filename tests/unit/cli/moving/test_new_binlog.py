"""What a binlog has behind the transactions that are read."""

from __future__ import annotations

from shardmerge.cli.moving.new_binlog import found_in
from shardmerge.cli.moving.resumption import NewBinlog
from shardmerge.connectors.binlog.binlog_events import BinlogEvent
from shardmerge.connectors.binlog.gtids import MySqlGtids, gtids_of
from tests.unit.cli.moving.test_move_rules import A, B


def events(*gtids: str) -> list[BinlogEvent]:
    """Transactions of one row each."""
    found = []
    for number, gtid in enumerate(gtids):
        lines = (
            ("Gtid", f"SET @@SESSION.GTID_NEXT= '{gtid}'"),
            ("Query", "BEGIN"),
            ("Table_map", "table_id: 7 (app.t)"),
            ("Write_rows", "table_id: 7 flags: STMT_END_F"),
            ("Xid", "COMMIT /* xid=1 */"),
        )
        for place, (kind, info) in enumerate(lines):
            pos = 1000 * number + 100 * place
            found.append(BinlogEvent("b.1", pos, kind, 1, pos + 100, info))
    return found


def read(text: str) -> MySqlGtids:
    found = gtids_of(text)
    assert isinstance(found, MySqlGtids)
    return found


def test_the_first_unread_transaction_and_the_events_of_the_begun_one_are_found() -> None:
    made = events(f"{A}:8", f"{B}:1", f"{A}:9", f"{B}:2", f"{A}:10")
    found = found_in(made, read(f"{A}:1-8"), f"{A}:9")
    assert found.first == f"{B}:1"
    assert [(each.index, each.gtid, each.table) for each in found.events] == [
        (2, f"{A}:9", "app.t")
    ]


def test_what_is_not_there_is_not_found() -> None:
    assert found_in(events(f"{A}:8"), read(f"{A}:1-8"), f"{A}:9") == NewBinlog()
