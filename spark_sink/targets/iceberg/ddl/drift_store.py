"""Keeps the differences of an Iceberg target's tables, with their times, in the control table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records import plain
from shardmerge.schemas.records.drift import Difference
from shardmerge.spark_sink.targets.iceberg.store import IcebergStore, repeated, swaps_of
from shardmerge.spark_sink.targets.iceberg.tables import IcebergTable

_DRIFT = "shardmerge.drift"


@dataclass(frozen=True, slots=True)
class _OfTable:
    target: TargetTable
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    """The form in which differences are stored, as JSON."""

    tables: tuple[_OfTable, ...] = ()


class IcebergDriftStore:
    """See ``interface.DriftStore``.

    Args:
        store: The pipeline's, of the thread that calls the methods.
    """

    def __init__(self, store: IcebergStore) -> None:
        self._store = store
        self._swaps: int | None = None

    def load(self) -> dict[TargetTable, tuple[Difference, ...]]:
        """See ``interface.DriftStore``."""
        store = self._store
        control = store.catalog.find(store.control)
        if control is None:
            return {}
        self._swaps = swaps_of(control)
        return dict(_kept(control))

    def keep(self, epoch: int, target: TargetTable, differences: Sequence[Difference]) -> None:
        """See ``interface.DriftStore``; one commit of the control table.

        Nothing is kept if a rebuilt table took a target's place since ``load``: what a look found
        before would be told of the new rows. The sink reads its state anew then.
        """

        def keep() -> None:
            control = self._store.fenced_control(epoch)
            if self._swaps in (None, swaps_of(control)):
                control.commit(_properties({**_kept(control), target: tuple(differences)}))

        repeated(keep)


def without_drift(control: IcebergTable, target: TargetTable) -> dict[str, str]:
    """The control table's properties that forget the differences of a target."""
    kept = _kept(control)
    return _properties({**kept, target: ()}) if target in kept else {}


def _properties(kept: Mapping[TargetTable, tuple[Difference, ...]]) -> dict[str, str]:
    tables = tuple(_OfTable(target, found) for target, found in sorted(kept.items()) if found)
    return {_DRIFT: plain.dump(_Kept(tables)).decode()}


def _kept(control: IcebergTable) -> Mapping[TargetTable, tuple[Difference, ...]]:
    text = control.property(_DRIFT)
    kept = _Kept() if text is None else plain.load(_Kept, text.encode())
    return {each.target: each.differences for each in kept.tables}
