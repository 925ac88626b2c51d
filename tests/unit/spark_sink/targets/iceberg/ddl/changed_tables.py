"""A pipeline with one Iceberg table, which people change by hand. No Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from shardmerge.schemas.model.actions import Adoption
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.schemas.target.drift import adoption_of, checked_adoption
from shardmerge.spark_sink.targets.iceberg.ddl.healing_runs import heal, plan_of
from shardmerge.spark_sink.targets.iceberg.ddl.journal import IcebergJournal
from shardmerge.spark_sink.targets.iceberg.ddl.table_looks import LayoutComparer
from shardmerge.spark_sink.targets.iceberg.store import IcebergStore
from shardmerge.spark_sink.targets.iceberg.texts.compared_layouts import ComparedLayout
from shardmerge.spark_sink.targets.iceberg.texts.history import History, Snapshot
from shardmerge.spark_sink.targets.iceberg.texts.layout import Field, Layout
from shardmerge.spark_sink.targets.interface import JournalEntry
from tests.iceberg_catalog import LakeCatalog
from tests.target_statements import written

T = TargetTable("m", "t")
DONE = JournalEntry("done")
CREATE = "CREATE TABLE `m`.`t` (`id` int NOT NULL, `a` string, `n` int) USING iceberg"
OTHERS = {"operation": "append", "engine-name": "spark", "spark.app.id": "local-1"}
OURS = {"operation": "overwrite", "wap.id": "shardmerge-1"}


class World:
    """A pipeline with one table, which people change."""

    def __init__(self) -> None:
        self.catalog = LakeCatalog()
        self.store().prepare()
        self.start()
        assert self.execute(1, CREATE) == DONE

    def start(self) -> None:
        """A sink that starts."""
        self.epoch = self.store().take_epoch()

    def store(self) -> IcebergStore:
        return IcebergStore(lambda: cast(Any, self.catalog), TargetTable("control", "p"), "p")

    def execute(self, version: int, sql: str) -> JournalEntry:
        return self.run(version, written(sql))

    def run(self, version: int, statement: TargetStatement) -> JournalEntry:
        return IcebergJournal(self.store(), self.epoch).execute(T, version, 0, statement)

    # --- what people do

    @property
    def layout(self) -> Layout:
        return self.catalog.tables[T].layout

    def alter(self, *fields: Field, **what: Any) -> None:
        last = max(self.layout.last_id, *(f.id for f in fields))
        self.catalog.change(T, layout=replace(self.layout, fields=fields, last_id=last, **what))

    def commits(self, *snapshots: Snapshot, current: int | None = None) -> None:
        last = snapshots[-1]
        columns = {0: frozenset(f.id for f in self.layout.fields)}
        known = {s.id: replace(s, schema=0) for s in snapshots}
        was = frozenset(known)
        history = History(
            last.id if current is None else current, last.sequence, known, was, columns
        )
        self.catalog.change(T, history=history)

    # --- what is seen

    @property
    def comparer(self) -> LayoutComparer:
        return LayoutComparer(self.store())

    def compare(self) -> ComparedLayout:
        return self.comparer.compare(T)

    @property
    def kinds(self) -> dict[str, str]:
        return {each.subject: each.kind.value for each in self.compare().differences}

    def heal(self, *subjects: str) -> list[str]:
        compared = self.compare()
        wanted = subjects or tuple(each.subject for each in compared.differences)
        steps, _ = plan_of(compared, T, wanted)
        heal(self.comparer, T, steps, wanted, "ann")
        return [each.sql or each.reason for each in steps]

    def adopt(self, version: int, subject: str) -> JournalEntry:
        compared = self.compare()
        [found] = [each for each in compared.differences if each.subject == subject]
        adoption = adoption_of(found, compared.found)
        assert isinstance(adoption, Adoption), adoption
        assert checked_adoption(adoption) == adoption
        said = TargetStatement("adopt", StatementKind.EXPANDING, "", (), (), None, (adoption,))
        return self.run(version, said)


ID, A, N = Field(1, "id", "int", required=True), Field(2, "a", "string"), Field(3, "n", "int")
