"""Keeps the differences of an Iceberg target's tables, with their times, in the control table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records import plain
from shardmerge.schemas.records.drift import Difference
from shardmerge.spark_sink.targets.iceberg.store import IcebergStore, repeated
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

    def load(self) -> dict[TargetTable, tuple[Difference, ...]]:
        """See ``interface.DriftStore``."""
        store = self._store
        control = store.catalog.find(store.control)
        return {} if control is None else dict(_kept(control))

    def keep(self, epoch: int, target: TargetTable, differences: Sequence[Difference]) -> None:
        """See ``interface.DriftStore``; one commit of the control table."""

        def keep() -> None:
            control = self._store.fenced_control(epoch)
            kept = {**_kept(control), target: tuple(differences)}
            tables = tuple(_OfTable(t, found) for t, found in sorted(kept.items()) if found)
            control.commit({_DRIFT: plain.dump(_Kept(tables)).decode()})

        repeated(keep)


def _kept(control: IcebergTable) -> Mapping[TargetTable, tuple[Difference, ...]]:
    text = control.property(_DRIFT)
    kept = _Kept() if text is None else plain.load(_Kept, text.encode())
    return {each.target: each.differences for each in kept.tables}
