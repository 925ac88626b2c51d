"""The three-shard example as data: shards, DDL steps, and the statement each gives on the target.

Every shard has its own range of ids. Nothing here depends on time or chance, so each run of the
demo plays the same rows.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from shardmerge.schemas.model.names import ShardId, TargetTable

DATABASE = "app"
TARGET = TargetTable("merged", "tbl")
SHARDS = (
    ShardId("s1", DATABASE, "tbl00"),
    ShardId("s1", DATABASE, "tbl01"),
    ShardId("s2", DATABASE, "tbl02"),
)
CREATE = "CREATE TABLE {table} (ID INT PRIMARY KEY, NAME VARCHAR(40) NOT NULL)"
_RANGE = 1_000_000


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One DDL statement of a shard.

    Attributes:
        shard: Index in ``SHARDS``.
        action: The text of the statement after ``ALTER TABLE`` and the table's name.
        emitted: Regular expression of the one statement expected on the target; "" for none.
    """

    shard: int
    action: str
    emitted: str

    @property
    def sql(self) -> str:
        """The statement for the shard."""
        shard = SHARDS[self.shard]
        return f"ALTER TABLE {shard.database}.{shard.table} {self.action}"

    def matches(self, statements: tuple[str, ...]) -> bool:
        """Whether the target's statements are the expected ones."""
        if not self.emitted:
            return not statements
        pattern = rf"ALTER TABLE `merged`\.`tbl` {self.emitted}"
        return len(statements) == 1 and re.fullmatch(pattern, statements[0], re.I) is not None


_LEVEL = "ADD COLUMN Level INT UNSIGNED NOT NULL"
STEPS = (
    DemoStep(0, _LEVEL, r"ADD COLUMN `Level` int unsigned NOT NULL DEFAULT '?0'?"),
    DemoStep(1, _LEVEL, ""),
    DemoStep(1, "DROP COLUMN NAME", r"ALTER COLUMN `NAME` SET DEFAULT ''"),
    DemoStep(2, _LEVEL, r"ALTER COLUMN `Level` DROP DEFAULT"),
    DemoStep(0, "DROP COLUMN NAME", ""),
    DemoStep(2, "DROP COLUMN NAME", r"DROP COLUMN `NAME`"),
)
"""In the order in which they are played, over both sources."""


class Writer:
    """Makes the rows of one shard: inserts, updates and deletes within its own id range."""

    def __init__(self, index: int) -> None:
        self.shard = SHARDS[index]
        self.columns: tuple[str, ...] = ("ID", "NAME")
        self._random = random.Random(index)  # noqa: S311 - rows of a demo, repeatable by intent
        self._next = index * _RANGE + 1
        self._ids: list[int] = []
        self.changes = 0

    @property
    def _table(self) -> str:
        return f"{self.shard.database}.{self.shard.table}"

    def altered(self, action: str) -> None:
        """Follow a step's DDL: from now on the rows have the columns after it."""
        if action == _LEVEL:
            self.columns = (*self.columns, "Level")
        else:
            self.columns = tuple(c for c in self.columns if c != "NAME")

    def insert(self, count: int) -> str:
        """One INSERT of that many new rows."""
        ids = range(self._next, self._next + count)
        self._next += count
        self._ids.extend(ids)
        self.changes += count
        rows = ", ".join(f"({', '.join(self._value(c, i) for c in self.columns)})" for i in ids)
        return f"INSERT INTO {self._table} ({', '.join(self.columns)}) VALUES {rows}"

    def update(self, count: int) -> list[str]:
        """Updates of that many rows, each of the shard's last column."""
        column = self.columns[-1]
        chosen = self._random.sample(self._ids, min(count, len(self._ids)))
        self.changes += len(chosen)
        return [
            f"UPDATE {self._table} SET {column} = {self._value(column, i + 1)} WHERE ID = {i}"
            for i in chosen
        ]

    def delete(self, count: int) -> list[str]:
        """Deletes of that many rows."""
        chosen = self._random.sample(self._ids, min(count, len(self._ids)))
        gone = set(chosen)
        self._ids = [i for i in self._ids if i not in gone]
        self.changes += len(chosen)
        return [f"DELETE FROM {self._table} WHERE ID = {i}" for i in chosen]

    def _value(self, column: str, number: int) -> str:
        if column == "ID":
            return str(number)
        return f"'{self.shard.table} #{number}'" if column == "NAME" else str(number % 97)
