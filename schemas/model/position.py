"""A place in one source's binlog, totally ordered within that source."""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering


@total_ordering
@dataclass(frozen=True, slots=True)
class SourcePosition:
    """The position of a record in its source's binlog.

    Positions of different sources are never compared. Two records may share one position: an
    update of a primary key is a delete and a create at the same place. Kafka orders these two.

    Attributes:
        epoch: Counts the source's fail-overs to another server (``Source.epoch``). Each position
            of a higher epoch is later.
        file: Binlog file name, such as ``binlog.000007``. Empty before the first file.
        pos: Byte offset of the event's start in that file.
        row: Row number within a rows event, from 0.

    Source: Debezium's ``source`` block; measured: ``pos`` is the start of the event for
    schema changes and rows alike.
    """

    epoch: int
    file: str
    pos: int
    row: int

    @property
    def sort_key(self) -> tuple[int, int, str, int, int]:
        """Orders files by their number: ``binlog.1000000`` follows ``binlog.999999``."""
        number = self.file.rpartition(".")[2]
        return (self.epoch, int(number) if number.isdigit() else -1, self.file, self.pos, self.row)

    def __lt__(self, other: SourcePosition) -> bool:
        return self.sort_key < other.sort_key

    def __str__(self) -> str:
        place = f"{self.file}:{self.pos}" + (f"+{self.row}" if self.row else "")
        return place if self.epoch == 0 else f"{self.epoch}/{place}"


BEGINNING = SourcePosition(0, "", 0, 0)
"""The position before every record of a source. The gate of a schema that a snapshot describes is
here."""
