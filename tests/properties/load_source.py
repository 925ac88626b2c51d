"""The source of ``load_world``: one table, and everything that its binlog has.

Each event has a position; ``states`` has the table after each event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias

from shardmerge.schemas.model.position import SourcePosition

Image: TypeAlias = dict[str, Any]
"""Identity of a column → its value: ``id`` is the key, ``u`` is unique."""
KEYS = 9


@dataclass(frozen=True)
class Ddl:
    """A schema change.

    Attributes:
        columns: Identities of the columns besides ``id`` and ``u`` after it.
        change: What it does to the rows that are there.
        target_change: What the target's statement does to its own rows.
        kind: Of that statement.
        live: False for DROP TABLE.
        orders_load: Whether the target cannot know the new values.
        fill: What the target gives a row that lacks the column which the change adds.
        is_keyed: Whether the table has a primary key after it; None if it has one as before.
    """

    columns: tuple[str, ...]
    change: Callable[[Image], Image] = dict
    target_change: Callable[[Image], Image] = dict
    kind: str = "expanding"
    live: bool = True
    orders_load: bool = False
    fill: int | None = None
    is_keyed: bool | None = None


@dataclass(frozen=True)
class Event:
    """An event of the binlog: a row that went, a row that came, or both; TRUNCATE; a DDL."""

    before: Image | None = None
    after: Image | None = None
    truncates: bool = False
    ddl: Ddl | None = None


@dataclass(frozen=True)
class State:
    """The table after some events; ``columns`` is None when it is gone."""

    rows: tuple[Image, ...]
    columns: tuple[str, ...] | None
    is_keyed: bool = True


@dataclass
class Shape:
    """What kind of table it is.

    Attributes:
        has_unique: Whether its column ``u`` is unique.
        unique_comes: Whether the target gets the unique key later.
        ignores_deletes: Whether the route ignores DELETE.
        loses_key: Whether its primary key comes and goes.
        condition: What ``where`` must be below for a row to be merged; None for all rows.
    """

    has_key: bool = True
    has_unique: bool = False
    unique_comes: bool = False
    condition: int | None = None
    ignores_deletes: bool = False
    loses_key: bool = False

    @property
    def may_be_read_again(self) -> bool:
        """Whether a decision may order that the table is read again."""
        return not self.has_unique and not self.ignores_deletes and not self.may_lack_key

    @property
    def may_lack_key(self) -> bool:
        """Whether rows are found by all their values, so that these must be the target's, too."""
        return self.loses_key or not self.has_key

    def keeps(self, image: Image) -> bool:
        return self.condition is None or image["where"] < self.condition


def place(index: int) -> SourcePosition:
    """Where the event with that index begins; the binlog's end for the number of events."""
    return SourcePosition(0, "binlog.000001", 4 + 10 * index, 0)


class Source:
    """The shard's server."""

    def __init__(self, shape: Shape, random: Random) -> None:
        self.shape, self.random = shape, random
        self.events: list[Event] = []
        self.states = [State((), ("where",), shape.has_key)]
        self.generation = 0
        self.replica = 0

    @property
    def now(self) -> State:
        return self.states[-1]

    def happens(self) -> None:
        """One event, as far as the table allows it."""
        if self.now.columns is None:
            self.ddl(Ddl(("where",), lambda image: image, is_keyed=self.shape.has_key))
            return
        dice = self.random.random()
        if self.shape.loses_key and dice < 0.04:
            self.changes_key()
        elif dice < 0.12:
            self.alters()
        elif dice < 0.14:
            self.append(Event(truncates=True), ())
        elif dice < 0.16:
            self.ddl(Ddl((), live=False, kind="contracting"))
        else:
            self.writes()

    def writes(self) -> None:
        rows, columns = self.now.rows, self.now.columns
        assert columns is not None
        old = self.random.choice(rows) if rows and self.random.random() < 0.6 else None
        if old is not None and self.random.random() < 0.4:
            self._put(old, None)
            return
        new = {c: self.random.randint(0, 99) for c in columns}
        new |= {"where": self.random.randint(0, 9)}
        new["id"] = self.random.randint(1, KEYS)
        if old is not None and self.random.random() < 0.6:
            new["id"] = old["id"]
        if self.shape.has_unique:
            new["u"] = self.random.randint(1, KEYS)
        if self.shape.may_lack_key:
            new |= {"where": new["where"] % 3} | dict.fromkeys(columns[1:], 0)
        if not self.now.is_keyed:
            new["id"] %= 3
        others = [row for row in rows if row is not old]
        taken = self.now.is_keyed and any(row["id"] == new["id"] for row in others)
        taken |= self.shape.has_unique and any(row["u"] == new["u"] for row in others)
        if not taken:
            self._put(old, new)

    def _put(self, old: Image | None, new: Image | None) -> None:
        kept = tuple(row for row in self.now.rows if row is not old)
        self.append(Event(old, new), kept if new is None else (*kept, new))

    def changes_key(self) -> None:
        """The primary key goes, or comes again if no two rows are in its way."""
        ids = [row["id"] for row in self.now.rows]
        columns, is_keyed = self.now.columns, not self.now.is_keyed
        assert columns is not None
        if not is_keyed or len(set(ids)) == len(ids):
            self.ddl(Ddl(columns, kind="switching", is_keyed=is_keyed))

    def alters(self) -> None:
        """A column comes, goes, is converted, or is reset to values that nobody knows."""
        columns = self.now.columns
        assert columns is not None
        extra = next((c for c in columns if c != "where"), None)
        self.generation += 1
        new, value = f"a#{self.generation}", self.random.randint(0, 99)
        if self.shape.may_lack_key:
            value = 0
        if extra is None:
            fill = _adding(new, lambda _: value)
            self.ddl(Ddl((*columns, new), fill, fill, fill=value))
            return
        kind = self.random.choice(
            ["drop", "convert", "reset" if self.shape.may_be_read_again else "convert"]
        )
        rest = tuple(c for c in columns if c != extra)
        if kind == "drop" or not self.now.is_keyed:
            without = _without(extra)
            self.ddl(Ddl(rest, without, without, kind="contracting"))
        elif kind == "convert":
            convert = _converting(extra, new)
            self.ddl(Ddl((*rest, new), convert, convert, kind="switching"))
        else:
            known = _adding(new, lambda image: 100 + image["id"] * self.generation)
            self.ddl(
                Ddl(
                    (*rest, new),
                    lambda image: known(_without(extra)(image)),
                    lambda image: _adding(new, lambda _: None)(_without(extra)(image)),
                    kind="switching",
                    orders_load=True,
                )
            )

    def ddl(self, ddl: Ddl) -> None:
        if ddl.is_keyed is None:
            ddl = replace(ddl, is_keyed=self.now.is_keyed)
        rows = tuple(ddl.change(row) for row in self.now.rows) if ddl.live else ()
        self.append(Event(ddl=ddl), rows, ddl.columns if ddl.live else None)

    def append(
        self, event: Event, rows: tuple[Image, ...], columns: tuple[str, ...] | None = ("?",)
    ) -> None:
        self.events.append(event)
        now, ddl = self.now, event.ddl
        is_keyed = now.is_keyed if ddl is None or ddl.is_keyed is None else ddl.is_keyed
        self.states.append(State(rows, now.columns if columns == ("?",) else columns, is_keyed))


def _adding(column: str, value: Callable[[Image], Any]) -> Callable[[Image], Image]:
    return lambda image: {**image, column: value(image)}


def _without(column: str) -> Callable[[Image], Image]:
    return lambda image: {c: v for c, v in image.items() if c != column}


def _converting(old: str, new: str) -> Callable[[Image], Image]:
    return lambda image: {
        new if c == old else c: None if v is None else v * 10 if c == old else v
        for c, v in image.items()
    }
