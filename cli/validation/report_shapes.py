"""The values that ``shardmerge validate --json`` prints. Pure; see ``cli.views.shapes``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row of the target that is not what its shard has.

    Attributes:
        kind: ``missing`` (only the shard has it), ``extra`` (no shard has it), ``differs``, or
            ``count`` (without a primary key: another number of such rows).
        key: A text for each column of the report's ``key``; bytes begin with ``0x``. Without a
            primary key: the row's digest.
        shard: The shard that has the row; "" when none has it, and for ``count``.
        columns: For ``differs``: the target's columns that differ.
        shard_rows: For ``count``: how many such rows all shards have together.
        target_rows: For ``count``: how many such rows the target has.
        repair: With ``--repair sql``: the statement that corrects it; "" without one.
        owners: For ``count``: the shards that have such rows, each with their number.
        row: For ``count``: column of the target → the value of one of these rows, at most 1,000
            characters of it; bytes begin with ``0x``. Empty behind the first 1,000 differences, and
            if the row was not there any more.
        since: With ``--continuous``: when the difference was first found, as an ISO time in UTC;
            "" otherwise. A comparison that does not find it ends it. Without ``--resume`` a process
            knows what it has found itself.
    """

    kind: str
    key: tuple[str, ...]
    shard: str
    columns: tuple[str, ...]
    shard_rows: int
    target_rows: int
    repair: str = ""
    owners: Mapping[str, int] = field(default_factory=dict)
    row: Mapping[str, str | None] = field(default_factory=dict)
    since: str = ""


@dataclass(frozen=True, slots=True)
class ValidatedTarget:
    """What ``shardmerge validate`` found in one target.

    Attributes:
        target: As ``database.table``.
        version: The target's version at the comparison.
        complete: Whether all rows were compared and none is in doubt.
        stopped: Why it is not complete; "" when it is.
        shards: The shards that were compared.
        key: The target's columns of the primary key; empty when rows were counted.
        columns: The target's columns that were compared.
        rows: Rows of the shards that were compared.
        ranges: Ranges of keys that were compared.
        took_ms: How long it took, in milliseconds.
        differences: Sorted by key.
        in_doubt: How many rows look different without a confirmation.
        unsettled: Rows that changed each time that they were read.
        obstacles: How many shards could not be compared.
        left_out: What was not compared or not judged, as sentences.
        repair_session: With statements in ``repair``: the statement to run before them, in the same
            session; "" otherwise.
        code: Of the error in ``stopped``, for example ``SM-4411``, if a server, Kafka or Kafka
            Connect did not answer; "" otherwise.
    """

    target: str
    version: int
    complete: bool
    stopped: str
    shards: tuple[str, ...]
    key: tuple[str, ...]
    columns: tuple[str, ...]
    rows: int
    ranges: int
    took_ms: int
    differences: tuple[RowDifference, ...]
    in_doubt: int
    unsettled: tuple[RowDifference, ...]
    obstacles: int
    left_out: tuple[str, ...]
    repair_session: str = ""
    code: str = ""

    @property
    def is_clean(self) -> bool:
        """Whether everything was compared and is equal."""
        return self.complete and not (self.differences or self.unsettled or self.obstacles)
