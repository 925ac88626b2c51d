"""The target of ``load_world``.

It refuses what a real one refuses: a row with a column that it does not have, a unique value that
is there already, a removal of a row that is not there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shardmerge.spark_sink.loading.load_state import Load

from .load_source import Image, Shape


class Refused(AssertionError):
    """The target refuses something: that must never happen."""


@dataclass
class Target:
    """What is stored in the target; nothing of it is lost.

    Attributes:
        staged: Attempt to read a snapshot → the rows in its table beside the target.
        attempt: The attempt that counts; 0 for none.
        copied_to: Attempt → how many of its rows are copied.
    """

    shape: Shape
    columns: dict[str, int | None] = field(default_factory=dict)
    rows: list[Image] = field(default_factory=list)
    staged: dict[int, list[Image]] = field(default_factory=dict)
    attempt: int = 0
    copied_to: dict[int, int] = field(default_factory=dict)
    loads: list[Load] = field(default_factory=list)
    applied: int = 0
    executed: set[int] = field(default_factory=set)
    epoch: int = 1
    is_unique: bool = False

    def __post_init__(self) -> None:
        self.is_unique = self.shape.has_unique and not self.shape.unique_comes

    def put(self, image: Image, *, is_keyed: bool) -> None:
        """Write a row, over the one with its key; or take that one out if it is not merged."""
        if unknown := set(image) - {"id", "u", *self.columns}:
            raise Refused(f"no column {unknown}")
        if is_keyed:
            self.rows = [row for row in self.rows if row["id"] != image["id"]]
        if not self.shape.keeps(image):
            return
        if self.is_unique and any(row["u"] == image["u"] for row in self.rows):
            raise Refused(f"the unique value {image['u']} is there")
        self.rows.append({**self.columns, **image})

    def remove(self, image: Image, *, is_keyed: bool) -> None:
        """Take a row out: the one with its key, or one that is equal to it."""
        if is_keyed:
            self.rows = [row for row in self.rows if row["id"] != image["id"]]
            return
        if not self.shape.keeps(image):
            return
        full = {**self.columns, **image}
        if full not in self.rows:
            raise Refused(f"no row {full} to remove")
        self.rows.remove(full)
