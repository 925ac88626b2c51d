"""What a complete comparison proves for later, and what is left to compare then. Pure.

A comparison under traffic proves this: *each row was equal in target and shards, except rows whose
keys have a record at or behind the offsets that the sink had stored when the comparison began.*

1. Let O be these offsets. The sink changes a row of the target after that only because of a record
   of the row's key at or behind O. Whoever writes the row to a shard after that makes such a
   record, too: its offset is at least the end of the partition at that moment, which is at least O.
2. So a row whose key has no record at or behind O stays as it is in target and shards, from the
   moment of O on. The comparison has read both after that moment, and found them equal.

``advanced`` repeats this: the offsets are read again, then the rows with records at or behind the
old O are compared. Afterwards the claim holds for the new offsets. When writes stand and the sink
has applied everything, the new offsets are the ends of the partitions. No record lies behind them,
so all rows are equal.

What else could change rows makes a proof void (``reason_to_compare_all``), or is a record that
names no key: TRUNCATE, a repeated snapshot. Then all rows are compared.

A row that the sink writes can replace another row with the same value in another unique key. So
where the target has such a key, the rows of both sides are counted, too: replacing a row only makes
the target smaller.

Step 1 does not hold for a row that somebody changes in the target by hand. So the end of the
target's own binlog is noted before O, and the rows that it names behind this end are compared, too
(``target_changes``). A proof without such an end does not see changes by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from shardmerge.connectors.binlog.binlog_changes import BinlogEnd

from .compared_table import ComparedTable
from .record_keys import unnamed_reason

Place: TypeAlias = tuple[str, int]
"""Topic and partition."""
MOST_KEYS = 1_000_000
"""With more changed keys than this, comparing all rows in ranges is quicker."""


@dataclass(frozen=True, slots=True)
class ProvenOffset:
    """See the module: the sink had applied the partition up to this offset."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Proof:
    """What a comparison has proved.

    Attributes:
        offsets: Of all partitions of the shards' row topics; empty when nothing is proved.
        version: Of the target.
        compared: A digest of what was compared and how: tables, columns, types, conditions, and
            the sources' epochs.
        target_end: Where the binlog of the target's server ended before the comparison; None if
            that binlog cannot be read.
    """

    offsets: tuple[ProvenOffset, ...] = ()
    version: int = 0
    compared: str = ""
    target_end: BinlogEnd | None = None

    def __bool__(self) -> bool:
        return bool(self.offsets)

    @property
    def places(self) -> dict[Place, int]:
        """Partition → offset."""
        return {(each.topic, each.partition): each.offset for each in self.offsets}


NO_PROOF = Proof()


@dataclass(frozen=True, slots=True)
class Compared:
    """What is compared.

    Attributes:
        version: Of the target.
        table: The target and its shards.
        epochs: Source → its epoch: a server that takes over can lack rows without any record.
    """

    version: int
    table: ComparedTable
    epochs: Mapping[str, int]

    @property
    def digest(self) -> str:
        """Another one for another comparison."""
        return digest_of(self.table, sorted(self.epochs.items()))


def digest_of(*what: object) -> str:
    """Another one for other values; their text has everything that they are."""
    return sha256(repr(what).encode()).hexdigest()


def proof_of(
    offsets: Mapping[Place, int], what: Compared, target_end: BinlogEnd | None = None
) -> Proof:
    """What a comparison proves that has ended without a difference.

    Args:
        offsets: What the sink had stored when the comparison began, for each partition of the
            shards' topics.
        what: What was compared.
        target_end: See ``Proof``.
    """
    proven = (ProvenOffset(*place, offset) for place, offset in sorted(offsets.items()))
    return Proof(tuple(proven), what.version, what.digest, target_end)


def reason_to_compare_all(proof: Proof, what: Compared, begins: Mapping[Place, int]) -> str:
    """Why a proof does not help; "" if comparing the changed rows proves that all are equal.

    Args:
        proof: Of an earlier comparison.
        what: What is compared now.
        begins: Partition → the first offset that Kafka still has.
    """
    if not proof:
        return "no comparison has proved anything yet"
    if (proof.version, proof.compared) != (what.version, what.digest):
        return "schemas, routes or a source's epoch have changed since the last comparison"
    if reason := reason_to_prove_nothing(what.table):
        return reason
    gone = sorted(
        f"{topic}/{number}"
        for (topic, number), begin in begins.items()
        if begin > proof.places.get((topic, number), 0)
    )
    return f"Kafka has removed records of {', '.join(gone[:3])} meanwhile" if gone else ""


def reason_to_prove_nothing(table: ComparedTable) -> str:
    """Why a comparison of this table proves nothing for later; "" if it does."""
    if not table.key:
        return "rows without a primary key are counted"
    if not (table.judges_missing and table.judges_extra and table.judges_values):
        return "a route ignores operations, or keeps rows that its shards lost"
    if table.other_keys and any(side.where for side in table.shards):
        return "the servers cannot count the rows for which a route's condition is true"
    return next((found for side in table.shards if (found := unnamed_reason(side))), "")
