"""The gates of a shard: where decisions stand in the stream of its rows. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace

from shardmerge.schemas.lattice.origin_columns import row_columns
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import Origin, origin_part
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.records.decisions import Outcome, Release

from .collation_keys import is_collation_key

_NEVER = 1 << 62
"""Stands for the effective version of a held gate: higher than any real one."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Where a decision stands in its shard's row stream.

    Attributes:
        version: Of the decision.
        position: Rows from here on (inclusive) lie behind the gate.
        outcome, columns, key, live, reason, hint, renewed, code: Of the decision.
        seen: ``Decisions.seen`` when this decision was shown, itself included. Watermarks with
            this ``seen`` or a higher one were read after the decision was seen.
        released_by: Version that opened a held gate; None while it is held, and for every other
            gate.
        left_out: Identities of columns whose values behind a held gate are not applied; its
            release names them.
        passed_over: Whether rows behind a held gate are skipped: the shard was taken out while it
            was held.
        began_ms: At a gate where a snapshot begins that replaces the shard's earlier rows: when
            the connector began it, in milliseconds by its clock. 0 at every other gate.
        reloads: Whether a decision orders that the target's rows from before the gate are taken
            out (``Decision.reloads``).
        loads: Whether the sink then reads the shard's table itself (``FixupKind.LOAD``).
        went_back: Whether the source's binlog went back before the gate, within one epoch. See
            ``ShardGates.is_before_every_row``.
    """

    version: int
    position: SourcePosition
    outcome: Outcome
    columns: tuple[ShardColumn, ...]
    key: tuple[str, ...]
    live: bool
    seen: int
    reason: str = ""
    hint: str = ""
    renewed: tuple[str, ...] = ()
    released_by: int | None = None
    left_out: tuple[str, ...] = ()
    passed_over: bool = False
    began_ms: int = 0
    reloads: bool = False
    code: str = ""
    loads: bool = False
    went_back: bool = False

    @property
    def begins_anew(self) -> bool:
        """Whether the rows from before the gate are taken out of the target."""
        return self.reloads or self.began_ms > 0

    @property
    def effective_version(self) -> int | None:
        """The version that the target must have reached for rows to pass; None while held."""
        return self.released_by if self.outcome is Outcome.HOLD else self.version


@dataclass(slots=True)
class ShardGates:
    """The gates of one shard in one target, in position order, which is version order too.

    Attributes:
        key_changes: Indices of the gates behind which rows have other message keys: the primary
            key's columns have other names or types. A row behind such a gate can be in another
            partition than earlier rows of the same key, so only the gate orders the two.
        restarts: Indices of the gates at which the earlier rows are taken out: a snapshot that
            began again describes the shard anew there, or a decision reloads it (``restarts``).
        needs_order: Whether rows that must keep their order can be in several partitions: some
            gate has no primary key, or a collation key (``collation_keys``).
        went_back: Index of the last gate before which the source's binlog went back; -1 for none.
        described: Position of the snapshot that described the shard last; None when none has. All
            tables that one snapshot describes have the same.
    """

    shard: ShardId
    gates: list[Gate] = field(default_factory=list)
    key_changes: list[int] = field(default_factory=list)
    restarts: list[int] = field(default_factory=list)
    went_back: int = -1
    needs_order: bool = False
    described: SourcePosition | None = None
    _versions: list[int] = field(default_factory=list)
    _reached: list[int] = field(default_factory=list)  # greatest effective version so far
    _key: tuple[object, ...] | None = None

    def append(self, gate: Gate) -> None:
        """Add the gate of the shard's next decision."""
        if gate.begins_anew:
            self.restarts.append(len(self.gates))
        if gate.went_back:
            self.went_back = len(self.gates)
        if gate.live and not gate.reloads:
            key = _key_columns(gate)
            if self.gates and (key is None or key != self._key):
                self.key_changes.append(len(self.gates))
            self._key = key
            self.needs_order |= _needs_order(gate)
        self.gates.append(gate)
        self._versions.append(gate.version)
        self._reach(gate)

    @property
    def ids_by_name(self) -> dict[str, str]:
        """Name of each column behind the last gate → the column's identity."""
        return {item.column.name: item.id for item in self.gates[-1].columns}

    @property
    def first_held(self) -> Gate | None:
        """The first gate that is held and not opened; None when there is none."""
        index = self.first_blocked(_NEVER)
        return self.gates[index] if index < len(self.gates) else None

    def is_before_every_row(self, gate: Gate) -> bool:
        """Whether no row that is not applied counts as before the gate, wherever it stands.

        Where a binlog went back, positions tell no order. So every row that is applied when the
        gate comes is before it, and every other row is behind it. The same holds for the gates
        before it.
        """
        return self.went_back >= 0 and gate.version <= self.gates[self.went_back].version

    def rows_behind(self, gate: Gate) -> SourcePosition:
        """Rows from here on lie behind the gate, as far as they are not applied."""
        return BEGINNING if self.is_before_every_row(gate) else gate.position

    def upto(self, version: int) -> int:
        """How many of the gates have a version of at most ``version``."""
        return bisect_right(self._versions, version)

    def first_blocked(self, version: int) -> int:
        """Index of the first gate that may not be passed before ``version`` is reached.

        That is the first gate that is held or whose effective version is at least ``version``. When
        there is none, it is the number of gates. The search is binary: there can be thousands.
        """
        return min(bisect_left(self._reached, version), len(self.gates))

    @property
    def reached(self) -> int:
        """The version that the target must have reached for rows to pass all gates; 0 for none.

        It means nothing while a gate is held.
        """
        return self._reached[-1] if self._reached else 0

    def release(self, version: int, release: Release, *, passed_over: bool = False) -> None:
        """Open held gates, as of ``version``; see ``Gate.passed_over``."""
        first = bisect_left(self._reached, _NEVER)
        for index in range(first, len(self.gates)):
            gate = self.gates[index]
            if gate.version > release.through:
                break
            if gate.outcome is Outcome.HOLD and gate.released_by is None:
                self.gates[index] = replace(
                    gate,
                    released_by=version,
                    left_out=release.left_out,
                    passed_over=passed_over,
                )
        del self._reached[first:]
        for gate in self.gates[first:]:
            self._reach(gate)

    def give_origin(self, origin: Origin) -> None:
        """Give the rows of all gates these origin columns: a rebuilt table has them."""
        for index, gate in enumerate(self.gates):
            columns, key = row_columns(gate.columns, gate.key, origin)
            self.gates[index] = replace(gate, columns=columns, key=key)
        # The next gate has these columns, too, and changes no key by that.
        for gate in reversed(self.gates):
            if gate.live and not gate.reloads:
                self._key = _key_columns(gate)
                break

    def _reach(self, gate: Gate) -> None:
        effective = gate.effective_version
        reached = _NEVER if effective is None else effective
        self._reached.append(max(reached, self._reached[-1]) if self._reached else reached)


def _key_columns(gate: Gate) -> tuple[object, ...] | None:
    """The columns that message keys are made of; None when they are not known."""
    if not gate.columns:
        return None
    columns = {item.column.name: item.column for item in gate.columns}
    return tuple((name, columns[name].type) for name in gate.key)


def _needs_order(gate: Gate) -> bool:
    if not gate.columns:
        return False
    key = [c for c in gate.columns if c.column.name in gate.key and origin_part(c.id) is None]
    return not key or any(is_collation_key(c.column.type) for c in key)
