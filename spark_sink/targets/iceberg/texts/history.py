"""An Iceberg table's commits, read from its metadata: which of them are not the sink's. Pure.

A snapshot is one commit of rows. The sink stages each of its commits under an id of its own
(``staging``), and the snapshot's summary keeps that id. So a snapshot without such an id is that of
somebody else. A snapshot of the operation ``replace`` has the same rows in other files: it is
upkeep.

Source: Iceberg specification, "Snapshots", "Optional Snapshot Summary Fields", "Appendix C".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

OURS = "shardmerge-"
"""How the ids begin under which the sink stages snapshots."""
STAGED_AS = "wap.id"
"""The key in a snapshot's summary whose value is the id under which it was staged."""
_UPKEEP = "replace"
_PROGRAMS = ("spark.app.id", "flink.job-id", "trino_query_id")
"""Keys of a summary whose value says which program made the snapshot."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One commit of rows.

    Attributes:
        sequence: Its sequence number: higher than that of every earlier commit.
        at_ms: When it was made, in milliseconds since 1970, by the clock of who made it.
        summary: Facts about it, with ``operation``.
        schema: Id of the table's schema at that time; None where this is not known.
    """

    id: int
    parent: int | None
    sequence: int
    at_ms: int
    summary: Mapping[str, str]
    schema: int | None = None

    @property
    def is_ours(self) -> bool:
        """Whether a sink has made it."""
        return self.summary.get(STAGED_AS, "").startswith(OURS)


@dataclass(frozen=True, slots=True)
class History:
    """The snapshots that a table's metadata contains.

    Attributes:
        current: Id of the current snapshot; None when there is none.
        sequence: The highest sequence number that was ever given.
        snapshots: By id; also those that were staged only.
        was_current: Ids of the snapshots that were the current one at some time.
        columns: Id of a schema → the ids of its columns.
    """

    current: int | None = None
    sequence: int = 0
    snapshots: Mapping[int, Snapshot] = field(default_factory=dict)
    was_current: frozenset[int] = frozenset()
    columns: Mapping[int, frozenset[int]] = field(default_factory=dict)

    @property
    def written(self) -> frozenset[int] | None:
        """Ids of the columns that the table had when rows were last committed.

        None when there are no rows, or when this is not known.
        """
        last = self.snapshots.get(self.current) if self.current is not None else None
        if last is None or last.schema is None:
            return None
        return self.columns.get(last.schema)

    def line(self) -> Iterator[Snapshot]:
        """The current snapshot, its parent, and so on, as far as they are not expired."""
        number = self.current
        while number is not None and (snapshot := self.snapshots.get(number)) is not None:
            yield snapshot
            number = snapshot.parent


def history_of(metadata: str) -> History:
    """The JSON of a table's metadata → its history."""
    document = json.loads(metadata)
    current = document.get("current-snapshot-id")
    return History(
        None if current in (None, -1) else current,
        document.get("last-sequence-number", 0),
        {each["snapshot-id"]: _snapshot(each) for each in document.get("snapshots", ())},
        frozenset(each["snapshot-id"] for each in document.get("snapshot-log", ())),
        {
            each["schema-id"]: frozenset(column["id"] for column in each["fields"])
            for each in document.get("schemas", ())
        },
    )


def _snapshot(entry: Mapping[str, object]) -> Snapshot:
    found = dict(entry)
    return Snapshot(
        found["snapshot-id"],  # type: ignore[arg-type]
        found.get("parent-snapshot-id"),  # type: ignore[arg-type]
        found.get("sequence-number", 0),  # type: ignore[arg-type]
        found["timestamp-ms"],  # type: ignore[arg-type]
        found.get("summary", {}),  # type: ignore[arg-type]
        found.get("schema-id"),  # type: ignore[arg-type]
    )


def last_of_others(history: History, after: int) -> str:
    """Somebody else's last commit of rows, for people; "" without one.

    Args:
        history: Of the table.
        after: A sequence number. Commits up to it do not count.
    """
    for each in history.line():
        if each.sequence <= after:
            break
        if not each.is_ours and each.summary.get("operation") != _UPKEEP:
            who = each.summary.get("engine-name", "another program")
            program = next((each.summary[key] for key in _PROGRAMS if key in each.summary), "")
            who += f" ({program})" if program else ""
            return f"{each.summary.get('operation', 'a commit')} by {who}, {_named(each)}"
    return ""


def taken_back(history: History, after: int) -> str:
    """The sink's last commit that somebody took back, for people; "" without one.

    Args:
        history: Of the table.
        after: See ``last_of_others``.
    """
    line = {each.id for each in history.line()}
    lost = [
        each
        for each in history.snapshots.values()
        if each.is_ours
        and each.sequence > after
        and each.id in history.was_current
        and each.id not in line
    ]
    if not lost:
        return ""
    return f"without the rows of {_named(max(lost, key=lambda each: each.sequence))}"


def _named(snapshot: Snapshot) -> str:
    at = datetime.fromtimestamp(snapshot.at_ms / 1000, UTC)
    return f"snapshot {snapshot.id} of {at:%Y-%m-%d %H:%M:%S} UTC"
