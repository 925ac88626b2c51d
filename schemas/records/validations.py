"""What ``shardmerge validate`` found in a target, as a record for the status pages."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.model.names import ShardId, TargetTable

DIFFER_CODE = "SM-4414"
"""The code of a target whose rows differ from those of its shards."""


@dataclass(frozen=True, slots=True)
class DifferingRows:
    """Differences of one kind and of one shard.

    Attributes:
        kind: ``missing`` (the target lacks the row), ``extra`` (no shard has it), ``differs`` (it
            has other values), or ``count`` (without a primary key: another number of such rows).
        shard: The shard that has the rows; None for ``extra`` and ``count``.
        rows: How many.
        keys: Of the first ones; a text for each column of the record's ``key``, and without a
            primary key the row's digest. Long texts are cut, and end with ``…`` then.
    """

    kind: str
    shard: ShardId | None
    rows: int
    keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class TargetValidation:
    """A comparison of a target with its shards, at its end. It has no values but those of keys.

    Attributes:
        version: The target's version at the comparison; 0 if it did not begin.
        began_ms: When this comparison began, in milliseconds since 1970.
        ended_ms: When it ended, likewise.
        complete: Whether all rows of the compared shards were compared and none is in doubt.
        rows: Rows of the shards that were compared.
        shards: How many shards were compared.
        missing, extra, differs, count: How many differences of each kind there are; see
            ``DifferingRows``.
        in_doubt: How many rows look different without a confirmation.
        unsettled: How many rows changed each time that they were read.
        obstacles: How many shards could not be compared.
        key: The target's columns of the primary key; empty when rows were counted.
        differing: Where the differences are: the first ones of each shard and kind. There may be
            more shards.
        only: The shards that the call named; empty if it was to compare all.
        left_out: What was not compared or not judged, as sentences: the first ones.
        stopped: Why it is not complete; "" when it is.
        code: Of the error in ``stopped``, if a server, Kafka or Kafka Connect did not answer.
        since_ms: Since when the oldest of the differences is known, in milliseconds since 1970; 0
            without differences.
        readings: How many readings of differing rows the call asked for, to repair them.
    """

    target: TargetTable
    version: int
    began_ms: int
    ended_ms: int
    complete: bool
    rows: int
    shards: int
    missing: int = 0
    extra: int = 0
    differs: int = 0
    count: int = 0
    in_doubt: int = 0
    unsettled: int = 0
    obstacles: int = 0
    key: tuple[str, ...] = ()
    differing: tuple[DifferingRows, ...] = ()
    only: tuple[ShardId, ...] = ()
    left_out: tuple[str, ...] = ()
    stopped: str = ""
    code: str = ""
    since_ms: int = 0
    readings: int = 0

    @property
    def differences(self) -> int:
        """How many differences there are."""
        return self.missing + self.extra + self.differs + self.count

    @property
    def is_whole(self) -> bool:
        """Whether it says of all rows whether they differ, as far as shards can be compared."""
        return self.complete and not self.only

    @property
    def is_clean(self) -> bool:
        """Whether everything that it was to compare was compared and is equal."""
        return self.complete and not (self.differences or self.unsettled or self.obstacles)

    @property
    def record_key(self) -> str:
        """The record's key in its topic.

        A comparison of some shards, or one that ended early, does not know of all rows. So it does
        not take the place of the latest one that does.
        """
        whole, part = record_keys(self.target)
        return whole if self.is_whole else part


def record_keys(target: TargetTable) -> tuple[str, str]:
    """The keys of a target's records: of comparisons of all rows, and of the others."""
    return str(target), f"{target}/part"
