"""Drift of Iceberg tables: noticed from the metadata, kept, healed, adopted, met. No Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.actions import Adoption
from shardmerge.schemas.model.errors import TargetError, WriterReplaced
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.schemas.records.drift import MET_CODE, Difference, DriftKind
from shardmerge.schemas.target.drift import adoption_of, checked_adoption
from shardmerge.spark_sink.targets.iceberg.ddl.drift_store import IcebergDriftStore
from shardmerge.spark_sink.targets.iceberg.ddl.healing_runs import heal, plan_of
from shardmerge.spark_sink.targets.iceberg.ddl.journal import IcebergJournal
from shardmerge.spark_sink.targets.iceberg.ddl.table_looks import IcebergLooks, LayoutComparer
from shardmerge.spark_sink.targets.iceberg.store import IcebergStore
from shardmerge.spark_sink.targets.iceberg.texts.compared_layouts import ComparedLayout
from shardmerge.spark_sink.targets.iceberg.texts.decided import written_columns
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


@pytest.fixture
def world() -> World:
    return World()


def test_every_statement_of_the_sink_leaves_no_difference(world: World) -> None:
    for version, clause in enumerate(
        [
            "ADD COLUMN `b` decimal(10,2)", "RENAME COLUMN `a` TO `text`", "ADD COLUMN `a` date",
            "ALTER COLUMN `n` TYPE bigint", "ALTER COLUMN `b` TYPE decimal(12,2)",
            "ALTER COLUMN `id` DROP NOT NULL", "ALTER COLUMN `b` COMMENT 'x'", "DROP COLUMN `n`",
            "ADD COLUMN `n` timestamp", "DROP COLUMN `gone`", "ADD COLUMN `n` timestamp",
        ],
        2,
    ):  # fmt: skip
        assert world.execute(version, f"ALTER TABLE `m`.`t` {clause}") == DONE, clause
        assert world.kinds == {}, clause
    world.start()
    assert world.kinds == {}


@pytest.mark.parametrize(
    ("fields", "kinds"),
    [
        ((ID, A), {"column:n": "missing"}),
        ((ID, A, replace(N, name="m")), {"column:n": "missing", "column:m": "harmless"}),
        ((ID, A, replace(N, type="long")), {"column:n": "harmless"}),
        ((ID, A, replace(N, type="string")), {"column:n": "values"}),
        ((ID, A, replace(N, required=True)), {"column:n": "refuses"}),
        ((replace(ID, required=False), A, N), {"column:id": "harmless"}),
        ((ID, A, Field(4, "n", "int")), {"column:n": "values"}),
        ((ID, A, N, Field(4, "x", "int")), {"column:x": "harmless"}),
        ((ID, A, N, Field(4, "x", "boolean")), {"column:x": "harmless"}),
        ((ID, A, N, Field(4, "x", "boolean", required=True)), {"column:x": "refuses"}),
        ((ID, A, replace(N, type="uuid")), {"column:n": "values"}),
        ((N, replace(A, doc="by hand"), ID), {}),
    ],
)
def test_what_a_change_by_hand_means(
    world: World, fields: tuple[Field, ...], kinds: dict[str, str]
) -> None:
    world.alter(*fields)
    assert world.kinds == kinds


def test_a_difference_is_told_as_spark_shows_columns(world: World) -> None:
    world.alter(ID, A, replace(N, type="long"), Field(4, "at", "timestamptz"))
    told = [(each.expected, each.found) for each in world.compare().differences]
    assert told == [("", "`at` timestamp"), ("`n` int", "`n` bigint")]
    world.alter(ID, A, Field(9, "n", "int"))
    [each] = world.compare().differences
    assert (each.expected, each.found) == ("`n` int, field 3", "`n` int, field 9")


def test_identifier_fields_do_no_harm(world: World) -> None:
    world.alter(ID, A, N, identifiers=(1,))
    assert world.kinds == {"identifier": "harmless"}
    assert world.heal() == ["ALTER TABLE `m`.`t` DROP IDENTIFIER FIELDS `id`"]
    assert world.kinds == {}


def test_a_dropped_column_comes_back_with_its_id_and_so_with_its_values(world: World) -> None:
    world.commits(Snapshot(1, None, 1, 0, OURS))
    world.alter(ID, N)
    assert world.heal() == ["restore the column `a` string, field 2"]
    assert world.kinds == {}
    assert world.layout.fields == (ID, A, N), "and where it stood"


def test_a_restored_column_is_not_null_only_if_every_row_has_it(world: World) -> None:
    world.commits(Snapshot(1, None, 1, 0, OURS))
    world.alter(A, N)
    world.heal()
    assert world.layout.field("id") == ID
    world.alter(A, N)
    world.commits(Snapshot(1, None, 1, 0, OURS))
    [step], _ = plan_of(world.compare(), T)
    assert "written or compacted since" in step.loses
    world.heal()
    assert world.layout.field("id") == replace(ID, required=False)
    assert world.kinds == {"column:id": "harmless"}


def test_a_renamed_column_gets_its_name_back(world: World) -> None:
    world.alter(ID, replace(A, name="b"), N)
    rename = "ALTER TABLE `m`.`t` RENAME COLUMN `b` TO `a`"
    assert world.heal() == [rename, rename]
    assert world.kinds == {}
    assert world.layout.field("a") == A
    noted = world.catalog.tables[T].properties["shardmerge.p.healed"]
    assert noted == f'["{rename} (healed by ann)"]'


def test_a_column_that_was_renamed_and_adopted_is_not_made_twice(world: World) -> None:
    world.alter(ID, replace(A, name="b"), N)
    assert world.adopt(2, "column:b") == DONE
    assert world.kinds == {"column:a": "missing"}
    assert world.heal() == ["rename the column b back: it was adopted"]
    assert world.layout.fields == (ID, replace(A, name="b"), N)


def test_a_column_that_took_the_name_of_another_is_replaced_by_it(world: World) -> None:
    world.alter(ID, A, Field(7, "n", "int"))
    assert world.heal() == [
        "ALTER TABLE `m`.`t` DROP COLUMN `n`", "restore the column `n` int, field 3"
    ]  # fmt: skip
    assert world.kinds == {}
    assert world.layout.last_id == 7, "the id of the dropped column is not given again"


@pytest.mark.parametrize(
    ("fields", "steps", "left"),
    [
        ((ID, A, replace(N, required=True)), ["ALTER COLUMN `n` DROP NOT NULL"], {}),
        ((ID, A, N, Field(4, "x", "uuid")), ["DROP COLUMN `x`"], {}),
        (
            (ID, A, replace(N, type="long")),
            ["Iceberg does not change n from bigint to int"],
            {"column:n": "harmless"},
        ),
        (
            (replace(ID, required=False), A, N),
            ["Iceberg does not make the nullable column id NOT NULL"],
            {"column:id": "harmless"},
        ),
    ],
)
def test_what_heals_and_what_cannot(
    world: World, fields: tuple[Field, ...], steps: list[str], left: dict[str, str]
) -> None:
    world.alter(*fields)
    alter = "ALTER TABLE `m`.`t` "
    assert [step.removeprefix(alter) for step in world.heal()] == steps
    assert world.kinds == left


def test_healing_is_refused_when_the_table_has_changed_since(world: World) -> None:
    world.alter(ID, A)
    steps, _ = plan_of(world.compare(), T)
    world.alter(ID)
    with pytest.raises(TargetError, match="has changed since"):
        heal(world.comparer, T, steps, ("column:a", "column:n"), "ann")
    assert world.layout.fields == (ID,)


def test_healing_goes_on_when_the_sink_commits_between(world: World) -> None:
    world.alter(ID, A)
    steps, _ = plan_of(world.compare(), T)
    world.catalog.between = [lambda: world.catalog.change(T, snapshot=9)]
    heal(world.comparer, T, steps, ("column:n",), "ann")
    assert world.kinds == {}
    assert world.catalog.tables[T].snapshot == 9


# --- rows of others


def test_rows_of_others_are_told_and_upkeep_is_not(world: World) -> None:
    first = Snapshot(1, None, 1, 0, OURS)
    world.commits(first)
    assert world.kinds == {}
    world.commits(first, Snapshot(2, 1, 2, 0, {"operation": "replace"}))
    assert world.kinds == {}
    world.commits(first, Snapshot(2, 1, 2, 1_764_000_000_000, OTHERS), Snapshot(3, 2, 3, 0, OURS))
    [found] = world.compare().differences
    assert (found.subject, found.kind) == ("rows", DriftKind.VALUES)
    assert found.found == "append by spark (local-1), snapshot 2 of 2025-11-24 16:00:00 UTC"
    assert "shardmerge validate m.t" in world.heal()[0]


def test_rows_that_were_there_before_the_sink_are_not_told() -> None:
    world = World()
    other = TargetTable("m", "u")
    create = CREATE.replace("`t`", "`u`")
    world.catalog.create(other, world.layout, {})
    history = History(5, 5, {5: Snapshot(5, None, 5, 0, OTHERS)}, frozenset({5}))
    world.catalog.change(other, history=history)
    journal = IcebergJournal(world.store(), world.epoch)
    assert journal.execute(other, 1, 0, written(create)) == DONE
    assert world.comparer.compare(other).differences == ()


def test_a_table_that_was_set_back_is_told(world: World) -> None:
    first, second = Snapshot(1, None, 1, 0, OURS), Snapshot(2, 1, 2, 0, OURS)
    world.commits(first, second, current=1)
    [found] = world.compare().differences
    assert (found.subject, found.kind) == ("rollback", DriftKind.VALUES)
    assert "without the rows of snapshot 2" in found.found
    staged = replace(second, id=3)
    world.commits(first, second)
    history = world.catalog.tables[T].history
    kept = {**history.snapshots, 3: staged}
    world.catalog.change(T, history=replace(history, snapshots=kept))
    assert world.kinds == {}, "a snapshot that was only staged was never there"


def test_adopted_rows_are_told_no_more_and_the_next_ones_are(world: World) -> None:
    others = Snapshot(1, None, 1, 0, OTHERS)
    world.commits(others)
    assert world.adopt(2, "rows") == DONE
    assert world.kinds == {}
    world.commits(others, Snapshot(2, 1, 2, 0, OURS))
    assert world.kinds == {}
    world.commits(Snapshot(2, 1, 2, 0, OURS))
    assert world.kinds == {}, "the adopted one is expired"
    world.commits(Snapshot(2, 1, 2, 0, OURS), Snapshot(3, 2, 3, 0, OTHERS))
    assert world.kinds == {"rows": "values"}


def test_rows_of_others_stay_told_when_their_snapshot_expires(world: World) -> None:
    world.commits(Snapshot(1, None, 1, 0, OTHERS))
    found = world.compare().differences
    world.commits(Snapshot(2, 1, 2, 0, OURS))
    assert world.comparer.compare(T, found).differences == found
    assert world.comparer.compare(T).differences == ()


# --- adoption


@pytest.mark.parametrize(
    ("fields", "subject"),
    [
        ((ID, A, N, Field(4, "x", "int")), "column:x"),
        ((ID, A, N, Field(4, "x", "boolean")), "column:x"),
        ((ID, A, replace(N, type="long")), "column:n"),
        ((ID, A, Field(4, "n", "int")), "column:n"),
        ((ID, A, replace(N, required=True)), "column:n"),
    ],
)
def test_what_is_adopted_counts_as_decided(
    world: World, fields: tuple[Field, ...], subject: str
) -> None:
    world.alter(*fields)
    assert world.adopt(2, subject) == DONE
    assert world.kinds == {}
    world.alter(ID, A)
    assert world.kinds[subject] == "missing"


def test_a_column_of_others_is_written_only_when_a_statement_adds_it(world: World) -> None:
    more, must = Field(4, "x", "int"), Field(5, "y", "int", required=True)
    world.alter(ID, A, N, more, must)

    def written_now() -> tuple[Field, ...]:
        return written_columns(world.layout, world.store().states()[T].decided)

    assert written_now() == (ID, A, N, must)
    assert world.adopt(2, "column:x") == DONE
    assert written_now() == (ID, A, N, must)
    assert world.execute(3, "ALTER TABLE `m`.`t` ADD COLUMN `x` int") == DONE
    assert written_now() == (ID, A, N, more, must)
    assert written_columns(world.layout, None) == world.layout.fields


def test_identifier_fields_are_adopted(world: World) -> None:
    world.alter(ID, A, N, identifiers=(1,))
    assert world.adopt(2, "identifier") == DONE
    assert world.kinds == {}


def test_what_was_changed_again_since_is_not_adopted(world: World) -> None:
    world.alter(ID, A, replace(N, type="long"))
    adoption = Adoption("column:n", "`n` string")
    said = TargetStatement("adopt", StatementKind.EXPANDING, "", (), (), None, (adoption,))
    assert world.run(2, said) == DONE
    assert world.kinds == {"column:n": "harmless"}


# --- statements that meet a change


@pytest.mark.parametrize(
    ("fields", "clause"),
    [
        ((ID, replace(A, name="b"), N), "RENAME COLUMN `a` TO `c`"),
        ((ID, A, replace(N, type="string")), "ALTER COLUMN `n` TYPE bigint"),
        ((ID, A, replace(N, type="string")), "DROP COLUMN `n`"),
        ((ID, A, Field(4, "n", "int")), "DROP COLUMN `n`"),
    ],
)
def test_a_statement_overwrites_no_change_by_hand(
    world: World, fields: tuple[Field, ...], clause: str
) -> None:
    world.alter(*fields)
    before = world.layout
    entry = world.execute(2, f"ALTER TABLE `m`.`t` {clause}")
    assert (entry.state, entry.code) == ("refused", MET_CODE), entry
    assert "shardmerge drift heal m.t" in entry.error
    assert world.layout == before
    journal = IcebergJournal(world.store(), world.epoch)
    assert journal.load()[T, 2, 0] == entry, "a sink that starts knows the code, too"
    world.heal()
    if world.kinds == {}:
        assert world.execute(2, f"ALTER TABLE `m`.`t` {clause}") == DONE
        assert world.kinds == {}


@pytest.mark.parametrize(
    ("fields", "clause", "left"),
    [
        ((ID, A, replace(N, type="long")), "ALTER COLUMN `n` TYPE bigint", {}),
        ((ID, A, replace(N, type="long")), "DROP COLUMN `n`", {}),
        ((ID, A), "DROP COLUMN `n`", {}),
        ((ID, A, N, Field(4, "b", "int")), "ADD COLUMN `b` int", {}),
        ((ID, A, N, Field(4, "b", "long")), "ADD COLUMN `b` int", {"column:b": "harmless"}),
        ((ID, A, N, Field(4, "x", "int")), "RENAME COLUMN `a` TO `c`", {"column:x": "harmless"}),
    ],
)
def test_a_statement_that_overwrites_nothing_is_executed(
    world: World, fields: tuple[Field, ...], clause: str, left: dict[str, str]
) -> None:
    world.alter(*fields)
    assert world.execute(2, f"ALTER TABLE `m`.`t` {clause}") == DONE
    assert world.kinds == left


def test_columns_that_are_wider_than_a_statement_makes_them_stay(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    assert world.execute(2, "ALTER TABLE `m`.`t` ADD COLUMN `d` decimal(10,2)") == DONE
    wide = Field(4, "d", "decimal(20, 2)")
    world.alter(ID, A, N, wide)
    assert world.execute(3, "ALTER TABLE `m`.`t` ALTER COLUMN `d` TYPE decimal(12,2)") == DONE
    assert world.layout.field("d") == wide
    assert world.kinds == {"column:d": "harmless"}
    assert [r.__dict__["event"] for r in caplog.records] == ["wider_columns_kept"]
    assert world.execute(4, "ALTER TABLE `m`.`t` DROP COLUMN `d`") == DONE
    assert [r.__dict__["event"] for r in caplog.records][1:] == ["wider_columns_replaced"]


# --- tables that are gone, or are others


def test_a_dropped_table_is_told_and_not_made_again_without_a_command(world: World) -> None:
    dropped = world.catalog.tables.pop(T)
    assert world.kinds == {"table": "missing"}
    world.start()
    entry = world.execute(1, CREATE)
    assert (entry.state, entry.code) == ("refused", "SM-3106")
    assert "somebody dropped it" in entry.error and T not in world.catalog.tables
    world.catalog.tables[T] = dropped
    assert world.kinds == {}, "somebody restored it"
    del world.catalog.tables[T]
    assert world.heal() == [
        "forget this table: the sink makes it anew when it is started again"
    ]  # fmt: skip
    assert world.store().made() == []
    world.start()
    assert world.execute(1, CREATE) == DONE
    assert world.kinds == {}
    assert world.store().made() == [T]


def test_another_table_with_the_same_name_is_not_taken_for_the_sinks(world: World) -> None:
    world.catalog.create(T, world.layout, {})
    assert world.kinds == {"table": "missing"}
    world.start()
    assert world.kinds == {"table": "missing"}
    entry = world.execute(1, CREATE)
    assert entry.state == "refused" and "is not the table that the sink made" in entry.error


def test_a_table_of_an_earlier_version_counts_as_it_is(world: World) -> None:
    state = replace(world.store().states()[T], decided=None)
    earlier = {**world.catalog.tables[T].properties, **world.store().properties(state)}
    world.catalog.change(T, properties=earlier)
    world.commits(Snapshot(1, None, 1, 0, OTHERS))
    world.alter(ID, A)
    world.start()
    assert world.kinds == {}
    world.alter(ID)
    assert world.kinds == {"column:a": "missing"}


# --- looks and what is kept


def test_a_look_compares_some_tables_and_the_next_one_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "shardmerge.spark_sink.targets.iceberg.ddl.table_looks.MOST_TOGETHER", 1
    )  # fmt: skip
    missing = TargetTable("m", "u")
    looks = IcebergLooks(world.comparer)
    first = looks.look({T: 0, missing: 0})
    assert (first.compared, first.left) == ({T: ()}, 1)
    second = looks.look({T: 0, missing: 0})
    assert second.left == 0
    assert [each.kind for each in second.compared[missing]] == [DriftKind.MISSING]
    looks.close()


def test_a_table_is_compared_again_only_after_a_commit_or_a_statement(world: World) -> None:
    looks = IcebergLooks(world.comparer)
    assert looks.look({T: 0}).compared == {T: ()}
    again = looks.look({T: 0})
    assert (again.compared, again.unchanged) == ({}, {T})
    assert looks.look({T: 1}).compared == {T: ()}
    world.alter(ID, A)
    [found] = looks.look({T: 1}).compared[T]
    assert found.subject == "column:n"
    del world.catalog.tables[T]
    for _ in range(2):
        assert [each.subject for each in looks.look({T: 1}).compared[T]] == ["table"]


def test_a_table_that_cannot_be_read_keeps_no_other_one_waiting(world: World) -> None:
    broken = TargetTable("m", "b")
    world.catalog.create(broken, world.layout, {"shardmerge.p.state": "{}"})
    look = IcebergLooks(world.comparer).look({T: 0, broken: 0})
    assert look.compared == {T: ()}
    assert "not readable" in str(look.failed[broken])


def test_a_look_ends_when_the_catalog_is_away(world: World) -> None:
    looks = IcebergLooks(world.comparer)

    def find(name: TargetTable) -> None:
        raise TargetError("away", retryable=True)

    find_before = world.catalog.find
    world.catalog.find = find  # type: ignore[method-assign]
    with pytest.raises(TargetError, match="away"):
        looks.look({T: 0})
    world.catalog.find = find_before  # type: ignore[method-assign]
    assert looks.look({T: 0}).compared == {T: ()}


def test_differences_are_kept_by_the_writer_alone(world: World) -> None:
    kept = IcebergDriftStore(world.store())
    assert kept.load() == {}
    found = (Difference("rows", DriftKind.VALUES, "", "x", 5, 3),)
    kept.keep(world.epoch, T, found)
    assert IcebergDriftStore(world.store()).load() == {T: found}
    kept.keep(world.epoch, T, ())
    assert kept.load() == {}
    world.start()
    with pytest.raises(WriterReplaced):
        kept.keep(world.epoch - 1, T, found)
