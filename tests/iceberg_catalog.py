"""A catalog of Iceberg tables without Spark: their metadata is replaced by compare-and-set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.targets.iceberg.tables import MissingTable, Moved, Uncertain
from shardmerge.spark_sink.targets.iceberg.texts.history import History
from shardmerge.spark_sink.targets.iceberg.texts.layout import Layout


@dataclass(frozen=True)
class Metadata:
    """A table; ``staged``: id → the ids of a staged snapshot and of its parent."""

    layout: Layout
    properties: Mapping[str, str]
    snapshot: int | None = None
    history: History = field(default_factory=History)
    staged: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)


class LakeCatalog:
    """Tables whose metadata is replaced by compare-and-set.

    Attributes:
        between: Called before each commit, once each: what others do, or what goes wrong.
    """

    def __init__(self) -> None:
        self.tables: dict[TargetTable, Metadata] = {}
        self.between: list[Callable[[], None]] = []
        self.unanswered = False

    def find(self, name: TargetTable) -> LakeReading | None:
        return LakeReading(self, name, self.tables[name]) if name in self.tables else None

    def load(self, name: TargetTable) -> LakeReading:
        found = self.find(name)
        if found is None:
            raise MissingTable(f"there is no table {name}")
        return found

    def create(self, name: TargetTable, layout: Layout, properties: Mapping[str, str]) -> None:
        self.tables[name] = Metadata(layout, properties)

    def sql_name(self, name: TargetTable) -> str:
        return f"`lake`.{name.sql}"

    def new_session(self) -> object:
        return object()

    def change(self, name: TargetTable, **what: Any) -> None:
        self.tables[name] = replace(self.tables[name], **what)


class LakeReading:
    """See ``tables.IcebergTable``."""

    def __init__(self, catalog: LakeCatalog, name: TargetTable, base: Metadata) -> None:
        self.name, self._catalog, self._base = name, catalog, base
        self.layout, self.snapshot_id = base.layout, base.snapshot
        self.location = repr(base)
        self.history, self.sequence = base.history, base.history.sequence

    def refreshed(self) -> LakeReading:
        return self._catalog.load(self.name)

    def property(self, key: str) -> str | None:
        return self._base.properties.get(key)

    def staged(self, staged_as: str) -> tuple[int, int | None] | None:
        return self._base.staged.get(staged_as)

    def commit(
        self,
        properties: Mapping[str, str],
        *,
        layout: Layout | None = None,
        publish: int | None = None,
    ) -> None:
        if self._catalog.between:
            self._catalog.between.pop(0)()
        if self._catalog.tables[self.name] is not self._base:
            raise Moved
        self._catalog.tables[self.name] = replace(
            self._base,
            properties={**self._base.properties, **properties},
            layout=layout or self._base.layout,
            snapshot=self._base.snapshot if publish is None else publish,
        )
        if self._catalog.unanswered:
            self._catalog.unanswered = False
            raise Uncertain
