"""A connector's offset and its server's ``gtid_mode``, with a server and a worker that are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.connectors.binlog.binlog_events import BinlogEvent
from shardmerge.connectors.binlog.gtid_place import NO_GTIDS
from shardmerge.connectors.binlog.gtids import MySqlGtids
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.repair.gtid_switch import Fitted, GtidSwitch
from shardmerge.connectors.repair.schema_history.history import (
    HistoryRecord,
    corrections,
    history_record,
    true_order_applies,
)
from shardmerge.connectors.repair.source_connector import SourceConnector
from shardmerge.schemas.model.errors import StackError
from tests.unit.connectors.binlog.test_binlog_events import ANONYMOUS, FILE, GTID, UUID, lines
from tests.unit.connectors.binlog.test_gtid_place import BEGIN, DDL, FILE_OF_BOTH, MARK, ROWS, gtids
from tests.unit.connectors.repair.schema_history.test_history import T, streamed, table

GTIDS_ONLY = lines(*BEGIN, ("Gtid", GTID % 4), *ROWS, ("Gtid", GTID % 5), *DDL)
"""The first at 300, the second at 800, up to 1000."""
REFUSED = "Cannot replicate GTID-transaction when @@GLOBAL.GTID_MODE = OFF"
ANONYMOUS_REFUSED = "Cannot replicate anonymous transaction when AUTO_POSITION = 1"


@dataclass
class Connector:
    """A connector of a source, with what was done to it."""

    values: Mapping[str, Any] | None
    mode: str = "ON"
    log: list[BinlogEvent] = field(default_factory=lambda: list(FILE_OF_BOTH))
    history: list[HistoryRecord] = field(default_factory=list)
    executed: MySqlGtids = field(default_factory=lambda: gtids("1-5"))
    flavour: str = "mysql"
    name: str = "c"
    done: list[str] = field(default_factory=list)
    written: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source = SimpleNamespace(flavour=self.flavour, name="s1")
        self.binlog = SimpleNamespace(gtid_mode=lambda: self.mode, events=self._events)
        self.binlog.gtid_executed = lambda: self.executed
        self.topics = SimpleNamespace(add_history=self.written.extend)
        self.rest = SimpleNamespace(set_offset=self._set_offset)

    def offset(self) -> SourceOffset | None:
        return self.values if self.values is None else SourceOffset(self.values, self.mode == "ON")

    def stop(self) -> None:
        if self.done[-1:] != ["stop"]:
            self.done.append("stop")

    def go_on(self) -> None:
        self.done.append("go on")

    def history_order(self) -> Callable[[HistoryRecord, SourceOffset], bool]:
        return true_order_applies

    def corrections(
        self, offset: SourceOffset, applies: Callable[[HistoryRecord, SourceOffset], bool]
    ) -> list[bytes]:
        return corrections(self.history, offset, "s1", 1, applies=applies)

    def _events(self, file: str, pos: int = 4) -> Iterator[BinlogEvent]:
        return (event for event in self.log if event.pos >= pos)

    def _set_offset(self, name: str, server: str, values: Mapping[str, Any]) -> None:
        assert (name, server) == ("c", "s1") and self.done[-1] == "stop"
        self.values = dict(values)

    @property
    def gtids(self) -> str:
        assert self.values is not None
        return str(self.values.get("gtids", "")).removeprefix(f"{UUID}:")


def at(pos: int, numbers: str = "") -> dict[str, Any]:
    named = {"gtids": f"{UUID}:{numbers}"} if numbers else {}
    return {"file": FILE, "pos": pos, **named}


def switch_of(connector: Connector) -> GtidSwitch:
    return GtidSwitch(cast(SourceConnector, connector))


def look(switch: GtidSwitch) -> bool:
    switch.see_mode()
    return switch.look()


@pytest.mark.parametrize("mode", ["OFF", "OFF_PERMISSIVE"])
def test_while_the_mode_is_not_on_the_offsets_gtids_are_marked_once(mode: str) -> None:
    connector = Connector(at(1300, "1-3"), mode)
    switch = switch_of(connector)
    assert [look(switch) for _ in range(3)] == [True, False, False]
    assert connector.done == ["stop", "go on"] and connector.gtids == f"1-4{MARK}"


def test_one_that_goes_by_gtid_is_left_alone_while_new_rows_have_gtids() -> None:
    connector = Connector(at(1300, "1-4"), "ON_PERMISSIVE")
    switch = switch_of(connector)
    assert not look(switch) and not look(switch) and connector.done == []
    assert switch.fit() is Fitted.CHANGED, "who starts it now starts it by place"


def test_one_that_was_perhaps_started_by_place_meanwhile_is_fitted_when_it_is_on_again() -> None:
    connector = Connector(at(1300, "1-3"), "ON_PERMISSIVE")
    switch = switch_of(connector)
    assert not look(switch)
    connector.mode = "ON"
    assert look(switch) and connector.gtids == "1-4"


def test_when_it_is_on_again_what_the_place_is_behind_is_added() -> None:
    connector = Connector(at(1300, f"1-3{MARK}"), "ON_PERMISSIVE", GTIDS_ONLY)
    switch = switch_of(connector)
    assert not look(switch)
    connector.mode, connector.values = "ON", at(900, f"1-3{MARK}")
    assert look(switch)
    assert connector.done == ["stop", "go on"] and connector.gtids == "1-4"
    assert not look(switch)
    connector.values = at(1000, "1-5")
    assert not look(switch), "and now it goes by GTID"


@pytest.mark.parametrize("mode", ["ON", "OFF", "ON_PERMISSIVE"])
@pytest.mark.parametrize("values", [None, {**at(4), "snapshot": "INITIAL"}])
def test_an_offset_of_a_snapshot_is_left_alone(mode: str, values: Mapping[str, Any] | None) -> None:
    connector = Connector(values, mode)
    switch = switch_of(connector)
    assert not look(switch) and switch.fit() is Fitted.FITS
    assert connector.done == []


def test_mariadb_has_no_such_mode() -> None:
    connector = Connector({"file": FILE, "pos": 4, "gtids": "0-1-5"}, "OFF", flavour="mariadb")
    switch = switch_of(connector)
    assert not look(switch) and switch.fit() is Fitted.FITS


@pytest.mark.parametrize(
    ("mode", "numbers", "executed"),
    [("ON", "1-4", "1-5"), ("OFF", "", ""), ("OFF", f"1-4{MARK}", "1-5")],
)
def test_what_fits_is_left_alone(mode: str, numbers: str, executed: str) -> None:
    connector = Connector(
        at(1300, numbers), mode, executed=gtids(executed) if executed else NO_GTIDS
    )
    switch = switch_of(connector)
    assert [look(switch) for _ in range(3)] == [False] * 3
    assert switch.fit() is Fitted.FITS
    assert connector.done == [] and connector.gtids == numbers


def test_an_offset_that_began_without_gtids_gets_those_of_its_place() -> None:
    connector = Connector(at(1300), "ON", GTIDS_ONLY)
    assert look(switch_of(connector)) and connector.gtids == "1-5"
    empty = Connector(at(100), "ON", lines(("Format_desc", ""), ("Previous_gtids", "")))
    assert not look(switch_of(empty)) and empty.done == []


def test_one_that_goes_by_its_place_without_a_mark_is_known_by_what_it_does() -> None:
    connector = Connector(at(800, "1-2"), "ON", FILE_OF_BOTH)
    switch = switch_of(connector)
    assert not look(switch), "the first look tells nothing"
    connector.values = at(1300, "1-2")
    assert look(switch) and connector.gtids == "1-4"


def test_transactions_without_a_gtid_that_may_be_on_their_way_are_awaited_for_a_look(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connector = Connector(at(200, f"1-3{MARK}"), "ON")
    switch = switch_of(connector)
    assert not look(switch)
    connector.values = at(500, f"1-3{MARK}")
    assert not look(switch) and connector.done == [], "it moves"
    assert look(switch)
    assert set(connector.done) == {"stop"}, "nobody's restart may pass them over"
    assert f"source_held source=s1 position={FILE}:500 gtid_mode=ON " in caplog.text
    assert f"the transaction at {FILE}:500 has no GTID" in caplog.text
    assert 'hint="SET GLOBAL gtid_mode = ON_PERMISSIVE on the source' in caplog.text
    assert switch.fit() is Fitted.HELD and caplog.text.count("source_held") == 1

    connector.mode = "ON_PERMISSIVE"
    assert switch.fit() is Fitted.FITS, "it goes on by its place"
    connector.mode, connector.values = "ON", at(800, f"1-3{MARK}")
    assert switch.fit() is Fitted.CHANGED and connector.gtids == "1-3"


@pytest.mark.parametrize(("pos", "place"), [(200, 300), (300, 300), (400, 400)])
def test_one_that_failed_at_a_transaction_without_a_gtid_is_held_before_it(
    pos: int, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    connector = Connector(at(pos, "1-3"), "ON")
    assert switch_of(connector).fit(ANONYMOUS_REFUSED) is Fitted.HELD
    assert f"the transaction at {FILE}:{place} has no GTID and is not read yet" in caplog.text
    assert connector.gtids == "1-3"


def test_one_that_failed_at_a_transaction_that_it_has_read_goes_on_by_gtid() -> None:
    connector = Connector(at(1300, "1-3"), "ON")
    assert switch_of(connector).fit(ANONYMOUS_REFUSED) is Fitted.CHANGED
    assert connector.gtids == "1-4"


def test_transactions_with_a_gtid_that_the_server_refuses_are_held_once_for_a_mode(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connector = Connector(at(700, "1-3"), "OFF")
    switch = switch_of(connector)
    assert switch.fit(REFUSED) is Fitted.HELD
    assert connector.gtids == f"1-3{MARK}", "whoever comes later knows, too"
    assert [switch.fit() for _ in range(2)] == [Fitted.HELD] * 2
    assert caplog.text.count("source_held") == 1
    assert 'hint="SET GLOBAL gtid_mode = OFF_PERMISSIVE on the source, and OFF again' in caplog.text
    connector.mode = "OFF_PERMISSIVE"
    assert switch.fit() is Fitted.FITS


def test_a_mode_that_was_off_while_no_connector_ran_is_not_forgotten() -> None:
    connector = Connector(at(300, "1-3"), "OFF")
    switch = switch_of(connector)
    for connector.mode in ("OFF", "ON"):
        switch.see_mode()
    # By its GTIDs it would begin behind what has none.
    assert switch.look() and set(connector.done) == {"stop"}


def test_one_without_gtids_is_marked_as_soon_as_its_server_has_one() -> None:
    log = lines(("Format_desc", ""), ("Previous_gtids", ""), ("Anonymous_Gtid", ANONYMOUS), *ROWS)
    connector = Connector(at(800), "OFF", log, executed=NO_GTIDS)
    switch = switch_of(connector)
    for connector.mode in ("OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE"):
        assert not look(switch)
    connector.executed = gtids("4")
    assert look(switch) and connector.gtids == MARK[1:]
    assert not look(switch) and connector.done == ["stop", "go on"]


def test_what_was_read_by_place_is_told_anew_when_gtids_are_on_again() -> None:
    """On another server's binlog no place tells that it is over."""
    before = streamed(SourceOffset(at(200, "1-2")), table(T, "a"))
    by_place = streamed(SourceOffset(at(800, f"1-3{MARK}")), table(T, "a", "b", kind="ALTER"))
    ahead = streamed(SourceOffset(at(1500, f"1-3{MARK}")), table(T, "a", kind="ALTER"))
    connector = Connector(at(1300, f"1-3{MARK}"), "ON", history=[before, by_place, ahead])
    assert switch_of(connector).fit() is Fitted.CHANGED
    (told,) = (history_record(value, "h") for value in connector.written)
    assert told is not None and told.snapshot
    assert [c["name"] for c in told.changes[0]["table"]["columns"]] == ["a", "b"]


def test_a_statement_whose_record_was_lost_with_its_task_is_still_to_come() -> None:
    """The stale GTIDs of the record precede those of the offset, but it stands behind its place."""
    before = streamed(SourceOffset(at(200, "1-2")), table(T, "a"))
    lost = streamed(SourceOffset(at(1500, "1-3")), table(T, "a", "b", kind="ALTER"))
    connector = Connector(at(1300, "1-3"), "OFF", history=[before, lost])
    assert switch_of(connector).fit() is Fitted.CHANGED and connector.gtids == f"1-4{MARK}"
    (told,) = (history_record(value, "h") for value in connector.written)
    assert told is not None
    assert [c["name"] for c in told.changes[0]["table"]["columns"]] == ["a"]


def test_a_mode_that_was_off_is_remembered_when_a_fit_gets_no_answer() -> None:
    connector = Connector(at(1300, "1-3"), "ON_PERMISSIVE")
    switch = switch_of(connector)
    switch.see_mode()
    connector.mode = "ON"
    switch.see_mode()
    answers = connector.binlog.gtid_mode

    def unanswered() -> str:
        raise StackError("source s1 does not answer")

    connector.binlog.gtid_mode = unanswered
    with pytest.raises(StackError, match="does not answer"):
        switch.fit()
    connector.binlog.gtid_mode = answers
    assert switch.fit() is Fitted.CHANGED and connector.gtids == "1-4"


def test_stale_gtids_are_remembered_when_the_stop_before_the_fit_fails() -> None:
    connector = Connector(at(800, "1-2"))
    switch = switch_of(connector)
    assert not look(switch)
    connector.values = at(1300, "1-2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connector, "stop", _does_not_stop)
        with pytest.raises(StackError, match="has not stopped"):
            look(switch)
    assert switch.fit() is Fitted.CHANGED and connector.gtids == "1-4"


def test_a_source_that_did_not_stop_when_it_was_held_is_told_of_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connector = Connector(at(200, "1-3"))
    switch = switch_of(connector)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connector, "stop", _does_not_stop)
        with pytest.raises(StackError, match="has not stopped"):
            switch.fit(ANONYMOUS_REFUSED)
    assert switch.fit(ANONYMOUS_REFUSED) is Fitted.HELD
    assert connector.done == ["stop"] and caplog.text.count("source_held") == 1


def _does_not_stop() -> None:
    raise StackError("connector c has not stopped", code="SM-4302")
