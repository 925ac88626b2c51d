"""Keeps a connector's offset in the form that its server's ``gtid_mode`` asks for.

If the mode is ON when a task starts, Debezium reads by the GTIDs of its offset, else by file and
position. It never changes from one to the other by itself. While it reads by position, the GTIDs of
the offset stay as they were, and a restart by these GTIDs would read again what came since. So:

* While the mode is not ON, the offset's GTIDs are marked as old (``SourceOffset.is_by_place``). A
  task that would read by marked GTIDs fails. When the mode goes down, the mark waits for
  OFF_PERMISSIVE, or for a failure.
* When the mode is ON again, the transactions that ended before the offset's position are added to
  the GTIDs.
* If neither form can be right, because the server refuses what is still to be read, the connector
  is stopped. So no restart skips anything, and the log says once what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from shardmerge.connectors.binlog.gtid_place import (
    NO_GTIDS,
    REFUSED_WITH_GTID,
    REFUSED_WITHOUT_GTID,
    Place,
    first_anonymous,
    offset_by_gtid,
    offset_by_place,
    place_at,
    reads_by_position,
)
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.repair.schema_history.history import HistoryRecord

from .source_connector import SourceConnector

log = logger(__name__)
_ON, _ON_PERMISSIVE, _OFF = "ON", "ON_PERMISSIVE", "OFF"


class Fitted(Enum):
    """What became of an offset."""

    FITS = "it was as the mode asks for"
    CHANGED = "it was changed; the connector is stopped"
    HELD = "it can be in no form; the connector is stopped"


class GtidSwitch:
    """Fits the offset of one connector. One thread at a time uses it.

    Args:
        connector: Whose offset.
    """

    def __init__(self, connector: SourceConnector) -> None:
        self._connector = connector
        self._mode = _ON
        self._fitted = ""
        """The mode that the running connector's offset is known to fit; "": none."""
        self._was_off = False
        """Whether the mode was another than ON since the connector was last seen to run, or its
        offset was seen to lack GTIDs."""
        self._seen: SourceOffset | None = None
        self._held: tuple[str, Mapping[str, Any]] | None = None

    def see_mode(self) -> None:
        """Ask the source for its mode, whatever its connector does.

        Raises:
            StackError: The source does not answer.
        """
        if self._connector.source.flavour == "mysql":
            self._mode = self._connector.binlog.gtid_mode()
            self._was_off |= self._mode != _ON

    def look(self) -> bool:
        """Fit the offset of a connector that runs to the mode that was seen.

        Returns:
            Whether it was restarted for that, or is held.

        Raises:
            StackError: Connect, Kafka or the source does not answer.
        """
        connector = self._connector
        if connector.source.flavour != "mysql":
            return False
        if self._mode == self._fitted and not (self._mode == _ON and self._was_off):
            return False
        offset = connector.offset()
        if offset is None or offset.is_snapshot:
            return False
        stale = self._is_stale(offset) if self._mode == _ON else self._lacks_a_mark(offset)
        if stale is False:
            self._fitted, self._was_off = self._mode, False
        if not stale:
            return False
        # Kept until a fit succeeds, whoever calls it.
        self._was_off |= self._mode == _ON
        connector.stop()
        if self.fit() is not Fitted.HELD:
            connector.go_on()
        return True

    def fit(self, trace: str = "") -> Fitted:
        """Fit the offset of a connector that does not run.

        Args:
            trace: The stack trace of the failed task; "" without one.

        Raises:
            StackError: Connect, Kafka or the source does not answer: call again later.
        """
        was_off = self._was_off
        self._fitted, self._was_off, self._seen = "", False, None
        try:
            return self._fit(trace, was_off=was_off)
        except BaseException:
            # Else the next call would trust GTIDs that may be stale.
            self._was_off |= was_off
            raise

    def _fit(self, trace: str, *, was_off: bool) -> Fitted:
        connector = self._connector
        if connector.source.flavour != "mysql":
            return Fitted.FITS
        offset = connector.offset()
        if offset is None or offset.is_snapshot:
            return Fitted.FITS
        mode = connector.binlog.gtid_mode()
        if self._held == (mode, offset.values):
            return Fitted.HELD
        if mode == _ON:
            is_stale = was_off or REFUSED_WITHOUT_GTID in trace
            return self._fit_to_gtids(offset, is_stale=is_stale)
        by_place = offset_by_place(offset, self._place(offset), connector.binlog.gtid_executed())
        fitted = self._change(mode, offset, by_place)
        if mode == _OFF and REFUSED_WITH_GTID in trace:
            return self._hold(
                mode, by_place, "a transaction with a GTID is not read yet, and the server refuses "
                "it while gtid_mode is OFF", "OFF_PERMISSIVE",
            )  # fmt: skip
        return fitted

    def _lacks_a_mark(self, offset: SourceOffset) -> bool | None:
        """Whether a running connector's offset must be marked while the mode is not ON.

        Returns:
            None if it must be asked again while this mode lasts.
        """
        if offset.is_by_place:
            return False
        is_between = self._mode == _ON_PERMISSIVE
        if offset.gtids is not None:
            # A connector that reads by GTID can go on so. Rows that come while it is stopped have
            # GTIDs: the server would refuse them if the mode is OFF by then.
            return None if is_between else True
        if self._connector.binlog.gtid_executed().intervals:
            return True
        return None if is_between else False

    def _is_stale(self, offset: SourceOffset) -> bool | None:
        """Whether a running connector's offset lacks GTIDs of what is before it; None: unknown.

        Only for mode ON.
        """
        seen, self._seen = self._seen, offset
        if offset.gtids is None or offset.is_by_place:
            place = self._place(offset)
            if not offset.is_by_place and place.read == NO_GTIDS:
                return None
            if self._unread_anonymous(offset, place) is None:
                return True
            # The connector may still be reading them.
            return (seen is not None and seen.position == offset.position) or None
        if self._was_off:
            return True
        if seen is None or seen.values == offset.values:
            return None
        if str(seen.gtids) != str(offset.gtids):
            return False
        return reads_by_position(offset, self._place(offset)) or None

    def _fit_to_gtids(self, offset: SourceOffset, *, is_stale: bool) -> Fitted:
        if not (is_stale or offset.gtids is None or offset.is_by_place):
            return Fitted.FITS
        place = self._place(offset)
        if (position := self._unread_anonymous(offset, place)) is not None:
            return self._hold(
                _ON, offset, f"the transaction at {position} has no GTID and is not read yet: the "
                "server refuses it, or passes it over, while gtid_mode is ON", "ON_PERMISSIVE",
            )  # fmt: skip
        return self._change(_ON, offset, offset_by_gtid(offset, place))

    def _change(self, mode: str, offset: SourceOffset, wanted: SourceOffset) -> Fitted:
        self._held = None
        if wanted.values == offset.values:
            return Fitted.FITS
        connector = self._connector
        connector.stop()
        order = connector.history_order()

        def applies(record: HistoryRecord, _: SourceOffset) -> bool:
            return order(record, wanted) and not (mode == _ON and record.is_by_place)

        found = connector.corrections(replace(offset, by_gtid=False), applies=applies)
        connector.topics.add_history(found)
        connector.rest.set_offset(connector.name, connector.source.name, wanted.values)
        log.warning(
            "gtids_fitted",
            source=connector.source.name,
            gtid_mode=mode,
            connect_offset=wanted.values,
        )
        return Fitted.CHANGED

    def _hold(self, mode: str, offset: SourceOffset, seen: str, wanted: str) -> Fitted:
        self._connector.stop()
        log.error(
            "source_held",
            source=self._connector.source.name,
            position=f"{offset.file}:{offset.pos}",
            gtid_mode=mode,
            reason=seen,
            hint=f"SET GLOBAL gtid_mode = {wanted} on the source, and {mode} again when everything "
            "is read",
        )
        self._held = (mode, offset.values)
        return Fitted.HELD

    def _place(self, offset: SourceOffset) -> Place:
        return place_at(self._connector.binlog.events(offset.file), offset.file, offset.pos)

    def _unread_anonymous(self, offset: SourceOffset, place: Place) -> str | None:
        """The place of the first transaction without a GTID that is not wholly read, if any."""
        if place.is_within_anonymous:
            return f"{offset.file}:{offset.pos}"
        found = first_anonymous(self._connector.binlog.events(offset.file, offset.pos))
        return None if found is None else f"{found.file}:{found.pos}"
