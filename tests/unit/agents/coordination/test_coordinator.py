"""The coordinator: one schema change in, exactly one decision out."""

from dataclasses import replace

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import (
    Column,
    Default,
    DefaultKind,
    Generated,
    Index,
    IndexKind,
    IndexPart,
    TableSchema,
)
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange

TARGET = TargetTable("merged", "t")
NULL = Default(DefaultKind.NULL)


def column(name: str, type_: str = "int", **more: object) -> Column:
    return replace(Column(name, ColumnType(type_), default=NULL), **more)  # type: ignore[arg-type]


def table(*columns: Column) -> TableSchema:
    key = Column("id", ColumnType("int"), nullable=False)
    return TableSchema((key, *columns), (Index("PRIMARY", IndexKind.PRIMARY, (IndexPart("id"),)),))


class Line:
    """A target's coordinator fed by hand, each shard on a source of its own."""

    def __init__(self) -> None:
        self.state: TargetState = coordinator.initial(TARGET)
        self.schemas: dict[str, TableSchema | None] = {}
        self.offset = 0
        self.changes: list[SchemaChange] = []

    def change(
        self,
        source: str,
        after: TableSchema | None,
        *,
        renames: dict[str, str] | None = None,
        error: str = "",
    ) -> Decision:
        before = self.schemas.get(source)
        self.offset += 1
        lineage: tuple[Lineage, ...] = ()
        if before and after:
            back = {new: old for old, new in (renames or {}).items()}
            names = {c.name for c in before.columns}
            lineage = tuple(
                Lineage(c.name, back.get(c.name, c.name if c.name in names else ""))
                for c in after.columns
            )
        change = SchemaChange(
            ChangeId(source, self.offset), TARGET, ShardId(source, "app", "t"),
            SourcePosition(0, "binlog.000001", self.offset * 100, 0),
            before, after, lineage, (), "DDL", error=error, hint="fix it" if error else "",
        )  # fmt: skip
        self.changes.append(change)
        self.schemas[source] = after
        step = coordinator.decide(self.state, change)
        assert step.decision is not None
        assert step.joined is not None
        assert step.decision.version == self.state.version + 1
        self.state = step.state
        return step.decision


def sql(decision: Decision) -> list[str]:
    return [s.sql.removeprefix("ALTER TABLE `merged`.`t` ") for s in decision.statements]


def test_the_three_shard_example_emits_the_published_statements() -> None:
    line = Line()
    name = Column("NAME", ColumnType("varchar", 20, charset="utf8mb4"), nullable=False)
    level = Column("Level", ColumnType("int", unsigned=True), nullable=False)
    created = line.change("s0", table(name))
    assert created.outcome is Outcome.EMIT
    assert line.change("s1", table(name)).outcome is Outcome.NOOP
    assert line.change("s2", table(name)).outcome is Outcome.NOOP

    emitted = [
        sql(line.change("s0", table(name, level))),
        sql(line.change("s1", table(name, level))),
        sql(line.change("s1", table(level))),
        sql(line.change("s2", table(name, level))),
        sql(line.change("s0", table(level))),
        sql(line.change("s2", table(level))),
    ]

    assert emitted == [
        ["ADD COLUMN `Level` int unsigned NOT NULL DEFAULT '0'"],
        [],
        ["ALTER COLUMN `NAME` SET DEFAULT ''"],
        ["ALTER COLUMN `Level` DROP DEFAULT"],
        [],
        ["DROP COLUMN `NAME`"],
    ]


def test_a_conflict_holds_its_shard_and_no_other() -> None:
    line = Line()
    line.change("s0", table())
    line.change("s1", table())
    line.change("s0", table(column("c", "int")))

    held = line.change("s1", table(column("c", "date")))
    other = line.change("s0", table(column("c", "int"), column("d", "int")))

    assert held.outcome is Outcome.HOLD
    assert held.statements == ()
    assert held.hint
    assert other.outcome is Outcome.EMIT
    assert [s.shard.source for s in line.state.shards.values() if s.hold] == ["s1"]


def test_a_held_shard_is_released_when_it_goes_back() -> None:
    line = Line()
    line.change("s0", table())
    line.change("s1", table())
    line.change("s0", table(column("c", "int")))
    line.change("s1", table(column("c", "date")))

    back = line.change("s1", table())

    assert back.outcome is Outcome.NOOP
    assert back.released == (ShardId("s1", "app", "t"),)
    assert not any(s.hold for s in line.state.shards.values())


def test_a_held_shard_is_released_when_the_others_follow() -> None:
    line = Line()
    for source in ("s0", "s1", "s2"):
        line.change(source, table(column("c", "int")))

    assert line.change("s0", table(column("c", "date"))).outcome is Outcome.HOLD
    assert line.change("s1", table(column("c", "date"))).outcome is Outcome.HOLD
    last = line.change("s2", table(column("c", "date")))

    assert last.outcome is Outcome.EMIT
    assert [s.kind.value for s in last.statements] == ["switching"]
    assert [s.source for s in last.released] == ["s0", "s1"]


def test_a_held_shard_is_released_when_the_other_side_leaves() -> None:
    line = Line()
    line.change("s0", table(column("c", "int")))
    line.change("s1", table(column("c", "date")))

    gone = line.change("s0", None)

    assert not gone.live
    assert gone.released == (ShardId("s1", "app", "t"),)


def test_a_shard_that_leaves_while_it_is_held_is_released() -> None:
    line = Line()
    line.change("s0", table(column("c", "int")))
    line.change("s1", table(column("c", "date")))

    gone = line.change("s1", None)

    assert gone.released == (ShardId("s1", "app", "t"),)
    assert "rows after that are passed over" in gone.warnings[1]


def test_a_type_change_of_the_only_shard_is_no_conflict() -> None:
    line = Line()
    line.change("s0", table(column("c", "int")))

    assert line.change("s0", table(column("c", "date"))).outcome is Outcome.EMIT


def test_a_repeated_change_decides_nothing() -> None:
    line = Line()
    line.change("s0", table())
    line.change("s0", table(column("c")))

    for change in line.changes:
        step = coordinator.decide(line.state, change)
        assert step.decision is None
        assert step.state == line.state


def test_a_rename_renames_the_target_once_and_keeps_the_identity() -> None:
    line = Line()
    line.change("s0", table(column("a")))
    line.change("s1", table(column("a")))

    first = line.change("s0", table(column("b")), renames={"a": "b"})
    second = line.change("s1", table(column("b")), renames={"a": "b"})

    assert sql(first) == ["RENAME COLUMN `a` TO `b`"]
    assert second.outcome is Outcome.NOOP
    assert first.columns[1].id == second.columns[1].id == "a#1"


def test_the_old_name_added_again_after_a_rename_is_a_new_column() -> None:
    line = Line()
    line.change("s0", table(column("a")))
    line.change("s1", table(column("a")))
    line.change("s0", table(column("b")), renames={"a": "b"})

    added = line.change("s0", table(column("b"), column("a")))

    assert [c.id for c in added.columns] == ["id#1", "a#1", "a#2"]
    assert sql(added) == ["ADD COLUMN `a` int"]


def test_a_column_dropped_everywhere_comes_back_as_another_generation() -> None:
    line = Line()
    line.change("s0", table(column("c")))
    line.change("s0", table())

    again = line.change("s0", table(column("c")))

    assert again.columns[1].id == "c#2"


def test_renames_to_different_names_lose_nothing_and_are_warned_of() -> None:
    line = Line()
    line.change("s0", table(column("a")))
    line.change("s1", table(column("a")))
    line.change("s0", table(column("b")), renames={"a": "b"})

    other = line.change("s1", table(column("x")), renames={"a": "x"})

    assert other.outcome is Outcome.NOOP
    assert other.columns[1].id == "a#1"
    assert "stays 'b'" in other.warnings[0]


def test_a_name_that_only_a_shard_that_left_gave_makes_room() -> None:
    line = Line()
    line.change("s0", table(column("a")))
    line.change("s1", table(column("a")))
    line.change("s0", table(column("b")), renames={"a": "b"})
    line.change("s1", table(column("x")), renames={"a": "x"})
    line.change("s0", None)

    added = line.change("s1", table(column("x"), column("b")))

    assert added.outcome is Outcome.EMIT
    assert sql(added)[0] == "RENAME COLUMN `b` TO `x`"
    assert sql(added)[1].startswith("ADD COLUMN `b`")


def test_adding_a_column_under_the_name_the_target_renamed_to_holds_until_dropped() -> None:
    line = Line()
    line.change("s0", table(column("a")))
    line.change("s1", table(column("a")))
    line.change("s0", table(column("b")), renames={"a": "b"})

    clash = line.change("s1", table(column("a"), column("b")))
    over = line.change("s1", table(column("a")))

    assert clash.outcome is Outcome.HOLD
    assert "two columns 'b'" in clash.reason
    assert over.released == (ShardId("s1", "app", "t"),)


def test_an_unreadable_change_holds_until_the_table_is_described_again() -> None:
    line = Line()
    line.change("s0", table())
    line.change("s1", table())

    held = line.change("s1", None, error="cannot parse it")
    again = line.change("s1", table(column("c")))

    assert held.outcome is Outcome.HOLD
    assert held.live
    assert held.hint == "fix it"
    assert again.outcome is Outcome.EMIT
    assert again.released == (ShardId("s1", "app", "t"),)


def test_a_new_column_before_an_old_one_does_not_take_its_identity() -> None:
    line = Line()
    line.change("s0", table(column("a")))
    line.change("s1", table(column("a")))
    line.change("s0", table(column("b")), renames={"a": "b"})

    clash = line.change("s1", table(column("b"), column("a")))

    assert [c.id for c in clash.columns] == ["id#1", "b#1", "a#1"]
    assert clash.outcome is Outcome.HOLD


def test_a_column_that_only_shards_have_is_renamed_with_the_first_shard_that_renames_it() -> None:
    line = Line()
    g, h = (
        column(name, default=None, generated=Generated("(`id` + 1)", stored=True)) for name in "gh"
    )
    for source in ("s0", "s1"):
        line.change(source, table(g))
    line.change("s2", table())
    assert line.state.names == {"g#1": "g"}

    line.change("s1", table(h), renames={"g": "h"})
    last = line.change("s2", table(h))

    assert last.columns[1].id == "g#1"
    assert [s.split("` ")[0] for s in sql(last)] == ["ADD COLUMN `h"]
    assert line.state.names == {}


def test_columns_that_are_new_come_in_the_order_of_the_shard_that_changed() -> None:
    line = Line()
    line.change("s9", table())
    line.change("s0", table())

    first = line.change("s9", table(column("z"), column("a")))

    assert sql(first) == ["ADD COLUMN `z` int", "ADD COLUMN `a` int"]


def test_the_last_shard_to_leave_leaves_the_target_as_it_is() -> None:
    line = Line()
    line.change("s0", table(column("c")))
    schema = line.state.schema

    gone = line.change("s0", None)

    assert gone.outcome is Outcome.NOOP
    assert line.state.schema == schema
    assert "stay in the target" in gone.warnings[0]
