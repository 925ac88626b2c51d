"""Pure: which requests for snapshots of single tables a connector has not answered yet.

A connector can leave a request unanswered without an error: one that was read just before its
process died is lost, and an exception while a chunk is sent ends the snapshot silently (Debezium
logs "Action snapshot-window-close failed"), after which later requests only queue up. A restart
makes it go on where it was; a request that is lost must be sent again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

from .signals import Notice

_TABLE = re.compile(r"\\Q(.*)\\E", re.DOTALL)
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 30.0, 3600.0
_FAILED_PAUSE_S = 2.0
"""How long a failed scan rests before it is asked for again; doubled by each further failure."""
_QUIET = ("COMPLETED", "ABORTED", "")
"""The last notice of a connector that reads no table: ``""`` when it has said nothing."""


class Remedy(StrEnum):
    """What can make a connector answer a request after all."""

    RESTART = "restart the connector"
    SEND_AGAIN = "send the requests again"


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it stands on the signals topic.

    Attributes:
        source: The source's name.
        table: ``database.table``.
        value: The record's value, to send it again.
    """

    source: str
    table: str
    value: bytes


def request_of(key: bytes | None, value: bytes | None) -> Request | None:
    """Read a record of the signals topic; None for one that asks for something else.

    Operators may write any of Debezium's signals there: only requests of our own form, for one
    table by its name, can be followed.
    """
    try:
        document = json.loads(value or b"")
        if document["type"] != "execute-snapshot":
            return None
        (table,) = document["data"]["data-collections"]
        found = _TABLE.fullmatch(table)
        return found and Request((key or b"").decode(), found[1], value or b"")
    except (ValueError, KeyError, TypeError):
        return None


@dataclass(frozen=True, slots=True)
class SourceRequests:
    """The open requests of one source, and since when nothing was heard. Times are monotonic.

    Attributes:
        open: In the order in which they were asked.
        heard_s: The latest of: the first request, a notice, a remedy.
        last: Type of the last notice, "" before the first.
        pause_s: The silence after which a remedy is due; doubled by each that brings no notice.
        remedy: The last that was tried since a notice.
        failed: Open requests whose scan ended with an error. Debezium asked the server for columns
            that a later DDL had changed already, which its binlog reader had not read yet.
        failed_s: When the latest of them failed.
        failed_pause_s: How long they rest before they are sent again.
    """

    open: tuple[Request, ...] = ()
    heard_s: float = 0.0
    last: str = ""
    pause_s: float = _SHORTEST_PAUSE_S
    remedy: Remedy | None = None
    failed: tuple[Request, ...] = ()
    failed_s: float = 0.0
    failed_pause_s: float = _FAILED_PAUSE_S

    def with_request(self, request: Request, now_s: float) -> SourceRequests:
        """With one request more; a repeated one is open once."""
        others = tuple(r for r in self.open if r.value != request.value)
        heard_s = self.heard_s if self.open else now_s
        failed = tuple(r for r in self.failed if r.value != request.value)
        return replace(self, open=(*others, request), heard_s=heard_s, failed=failed)

    def with_notice(self, notice: Notice, now_s: float, shortest_s: float) -> SourceRequests:
        """After a notice: a table's scan answers its oldest request, or fails it."""
        heard = replace(self, heard_s=now_s, last=notice.type, pause_s=shortest_s, remedy=None)
        if notice.type == "ABORTED":
            return replace(heard, open=(), failed=())
        first = next((r for r in self.open if r.table == notice.table), None)
        if notice.type != "TABLE_SCAN_COMPLETED" or first is None:
            return heard
        failed = tuple(r for r in self.failed if r != first)
        if not notice.tells_scan:
            return replace(heard, failed=(*failed, first), failed_s=now_s)
        still = list(self.open)
        still.remove(first)
        return replace(heard, open=tuple(still), failed=failed, failed_pause_s=_FAILED_PAUSE_S)

    def to_repeat(self, now_s: float) -> tuple[Request, ...]:
        """The requests whose scan failed, once they have rested."""
        rested = self.last != "PAUSED" and now_s - self.failed_s >= self.failed_pause_s
        return self.failed if rested else ()

    def due(self, now_s: float) -> Remedy | None:
        """The remedy that is due now, if any.

        An idle connector has lost the request; one within a snapshot is stuck. If the one remedy
        brought nothing, the other is tried. A snapshot that an operator paused is left alone.
        Requests whose scan failed are sent again although other tables are read meanwhile.
        """
        if self.to_repeat(now_s):
            return Remedy.SEND_AGAIN
        if not self.open or self.last == "PAUSED" or now_s - self.heard_s < self.pause_s:
            return None
        if self.remedy is None:
            return Remedy.SEND_AGAIN if self.last in _QUIET else Remedy.RESTART
        return Remedy.RESTART if self.remedy is Remedy.SEND_AGAIN else Remedy.SEND_AGAIN

    def tried(self, remedy: Remedy, now_s: float) -> SourceRequests:
        """After a remedy: the next is due after twice the silence, at most an hour.

        A connector that is far behind in its binlog says nothing for long, and needs no remedy.
        """
        if self.to_repeat(now_s):
            rest_s = min(2 * self.failed_pause_s, _LONGEST_PAUSE_S)
            return replace(self, failed=(), failed_pause_s=rest_s)
        pause_s = min(2 * self.pause_s, _LONGEST_PAUSE_S)
        return replace(self, heard_s=now_s, pause_s=pause_s, remedy=remedy)


@dataclass(slots=True)
class OpenRequests:
    """All sources' open requests, fed with both topics' records in their order.

    Args:
        shortest_s: The silence after which the first remedy is due.
    """

    shortest_s: float = _SHORTEST_PAUSE_S
    _sources: dict[str, SourceRequests] = field(default_factory=dict)

    def add_request(self, request: Request, now_s: float) -> None:
        """Take a request that was asked."""
        self._sources[request.source] = self._of(request.source).with_request(request, now_s)

    def add_notice(self, notice: Notice, now_s: float) -> None:
        """Take a notice of a connector."""
        source = self._of(notice.source)
        self._sources[notice.source] = source.with_notice(notice, now_s, self.shortest_s)

    def of(self, source: str) -> tuple[Request, ...]:
        """The open requests of a source, in the order in which they were asked."""
        return self._of(source).open

    def due(self, now_s: float) -> Iterator[tuple[str, Remedy, tuple[Request, ...]]]:
        """Sources whose requests need a remedy now, with the requests."""
        for name, source in sorted(self._sources.items()):
            if (remedy := source.due(now_s)) is not None:
                yield name, remedy, source.to_repeat(now_s) or source.open

    def tried(self, source: str, remedy: Remedy, now_s: float) -> None:
        """Told that a source's remedy was applied."""
        self._sources[source] = self._of(source).tried(remedy, now_s)

    def _of(self, source: str) -> SourceRequests:
        return self._sources.get(source) or SourceRequests(pause_s=self.shortest_s)
