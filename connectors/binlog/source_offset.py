"""A connector's offset: up to where Debezium has read a source. Pure.

Source: Debezium's ``BinlogOffsetContext``; measured, tests/integration/connect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.position import SourcePosition

from .gtids import Gtids, MySqlGtids, gtids_of

_WITHIN_TRANSACTION = ("event", "row")
_BY_PLACE = ":9223372036854775806-1"


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """What Kafka Connect keeps for a connector of one source.

    Attributes:
        values: As Debezium wrote them. ``file`` and ``pos`` name the transaction that is read
            next, ``event`` and ``row`` how many of its events, and of the next event's rows, are
            delivered; ``gtids`` the transactions before it. Keys of incremental snapshots too.
        by_gtid: Whether the server gives GTIDs now. If it does, Debezium reads by the offset's
            GTIDs. If not, it reads by file and position, and the GTIDs from before mean nothing.

    A connector that reads by position copies the text of its GTIDs unchanged into its offsets and
    its schema history. So the repair marks these GTIDs as old, with an interval that ends before it
    begins (``gtid_switch``). Debezium takes that interval for empty. A server refuses it in a
    request by GTID (error 1773). So a restart of such a connector when GTIDs are on again fails,
    and nothing is read twice or skipped.
    """

    values: Mapping[str, Any]
    by_gtid: bool = True

    @property
    def file(self) -> str:
        """The binlog file."""
        return str(self.values.get("file") or "")

    @property
    def pos(self) -> int:
        """Bytes from the beginning of the file."""
        return int(self.values.get("pos") or 0)

    @property
    def event(self) -> int:
        """How many events of the next transaction are delivered, its BEGIN included."""
        return int(self.values.get("event") or 0)

    @property
    def row(self) -> int:
        """How many rows of the event behind those are delivered."""
        return int(self.values.get("row") or 0)

    @property
    def is_within_transaction(self) -> bool:
        """Whether events of the next transaction are delivered: perhaps all, perhaps some."""
        return self.event > 0 or self.row > 0

    @property
    def gtids(self) -> Gtids | None:
        """The transactions that are read; None when the source gives no GTIDs."""
        text = str(self.values.get("gtids") or "")
        try:
            return gtids_of(text)
        except ValueError as error:
            raise ContractError(
                f"the connector's offset has GTIDs that cannot be read: {error}",
                hint="see GET /connectors/NAME/offsets of Kafka Connect",
                code="SM-2120",
            ) from error

    @property
    def is_by_place(self) -> bool:
        """Whether its GTIDs are marked as those from before the connector read by position."""
        return _BY_PLACE in str(self.values.get("gtids") or "")

    @property
    def read_gtids(self) -> Gtids | None:
        """The transactions that the server leaves out; None where Debezium reads by position."""
        return self.gtids if self.by_gtid and not self.is_by_place else None

    @property
    def position(self) -> SourcePosition:
        """The place of the transaction that is read next, without an epoch."""
        return SourcePosition(0, self.file, self.pos, 0)

    @property
    def is_snapshot(self) -> bool:
        """Whether a snapshot of all tables is not finished."""
        return bool(self.values.get("snapshot"))

    def with_gtid(self, gtid: str) -> SourceOffset:
        """The offset as if one transaction more had been read, somewhere behind it.

        With GTIDs of MySQL the server then leaves out that transaction alone. With those of MariaDB
        it leaves out every one before it in its domain, too.
        """
        gtids = self.gtids
        if gtids is None:
            raise ValueError("the offset has no GTIDs")
        return replace(self, values={**self.values, "gtids": str(gtids.adding(gtid))})

    def with_gtids(self, gtids: MySqlGtids, marked_for: str = "") -> SourceOffset:
        """The offset with other GTIDs.

        Args:
            gtids: All of them.
            marked_for: A server's UUID, to mark the GTIDs, see ``is_by_place``; without GTIDs the
                mark has this UUID. "" for GTIDs by which the connector reads.
        """
        text = str(gtids)
        if marked_for:
            text = f"{text or marked_for}{_BY_PLACE}"
        values = {key: value for key, value in self.values.items() if key != "gtids"}
        return replace(self, values={**values, "gtids": text} if text else values)

    def moved_to(self, file: str, pos: int, gtid: str = "") -> SourceOffset:
        """The offset at the end of a statement; everything before it must be delivered."""
        kept = {k: v for k, v in self.values.items() if k not in _WITHIN_TRANSACTION}
        moved = replace(self, values={**kept, "file": file, "pos": pos})
        gtids = self.read_gtids
        if gtids is None or not gtid:
            return moved
        return replace(moved, values={**moved.values, "gtids": str(gtids.adding(gtid))})
