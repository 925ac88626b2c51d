"""Renames by copying under random histories: the target holds what the shards' rows hold.

The barrier's machine with a target that fills in defaults and moves values, as a server does. What
is compared are the rows of the shards themselves, but for those that a decision said may differ.
"""

from __future__ import annotations

import re

from hypothesis import strategies as st
from hypothesis.stateful import rule

from shardmerge.schemas.ddl.apply.statements import apply_alter
from shardmerge.schemas.ddl.changes import AlterTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.policies import Mode, RenamePolicy
from shardmerge.schemas.model.tables import Column, DefaultKind, TableSchema
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.spark_sink.barrier.decisions import Decisions, StatementKey
from shardmerge.spark_sink.barrier.statements import bindings
from tests.properties.barrier_machine import SETTINGS, BarrierMachine
from tests.properties.barrier_world import COLUMNS, SHARDS, TARGET, VALUES, number_of, numbers_of
from tests.toy_target import CONTEXT, FAMILIES, Rejected, ToyTarget, accepts

DEFINITIONS = ["INT", "INT NOT NULL", "INT NOT NULL DEFAULT 5", "INT DEFAULT 7", "BIGINT"]
_COPY = re.compile(
    r"UPDATE \S+ SET `(?P<to>\w+)` = `(?P<come>\w+)`(?P<clears>, `\w+` = NULL)? "
    r"WHERE (?:`\w+` IS NULL AND )?`\w+` IS NOT NULL"
)


class FillingTarget(ToyTarget):
    """Fills in defaults.

    Attributes:
        filled: Per key the columns that hold a default, which no event wrote.
    """

    def __init__(self) -> None:
        super().__init__()
        self.filled: dict[int, set[str]] = {}

    def execute(self, key: StatementKey, sql: str) -> None:
        found = _COPY.fullmatch(sql)
        if found is None:
            super().execute(key, sql)
            return
        if key in self.executed:
            raise Rejected(f"statement {key} runs twice")
        come, to = found["come"], found["to"]
        assert self.schema is not None
        kept = self.schema.column(to)
        assert kept is not None
        for number, cells in self.cells.items():
            if cells[come] is None or (not found["clears"] and cells[to] is not None):
                continue
            if not accepts(kept, cells[come]) and come not in self.filled[number]:
                if number in self.orphans:
                    continue
                raise Rejected(f"{sql}: {cells[come]!r}")
            cells[to] = cells[come]
            self.filled[number].discard(to)
            if found["clears"]:
                cells[come] = None
        self.executed.add(key)

    def fill_nulls(self, name: str) -> None:
        assert self.schema is not None
        column = self.schema.column(name)
        assert column is not None
        for key, cells in self.cells.items():
            if cells[name] is None:
                if name not in self.filled[key] and key not in self.orphans:
                    raise Rejected(f"row {key} has NULL in {name}, and gets a default")
                cells[name] = _default(column)
                self.filled[key].add(name)

    def upsert(self, key: int, values: dict[str, object]) -> None:
        super().upsert(key, values)
        assert self.schema is not None
        absent = [c for c in self.schema.columns if c.name not in values]
        self.cells[key] |= {c.name: _default(c) for c in absent}
        self.filled[key] = {c.name for c in absent}

    def _alter(self, before: TableSchema, statement: AlterTable) -> None:
        result = apply_alter(before, statement, "t", CONTEXT)
        for key, cells in self.cells.items():
            old, was_filled = dict(cells), set(self.filled[key])
            cells.clear()
            self.filled[key] = set()
            for lineage, column in zip(result.lineage, result.schema.columns, strict=True):
                was = before.column(lineage.before) if lineage.before else None
                if was is None or FAMILIES[was.type.name] != FAMILIES[column.type.name]:
                    if was is not None:
                        self.converted.add(column.name)
                    cells[column.name] = _default(column)
                    self.filled[key].add(column.name)
                    continue
                value = old[was.name]
                if was.name in was_filled:
                    self.filled[key].add(column.name)
                elif not accepts(column, value) and key not in self.orphans:
                    raise Rejected(f"{statement}: column {column.name} holds {value!r}")
                cells[column.name] = value
        self.schema = result.schema


class CopyMachine(BarrierMachine):
    """Renames above all; in optimistic mode they copy, in pessimistic mode they are one change."""

    target_class = FillingTarget
    renames = RenamePolicy.COPY

    def __init__(self) -> None:
        super().__init__()
        self.may_differ: dict[ShardId, set[int]] = {shard: set() for shard in SHARDS}
        self.taken_out: set[ShardId] = set()

    @rule(
        shard=st.sampled_from(SHARDS),
        column=st.sampled_from(COLUMNS),
        other=st.sampled_from(COLUMNS),
        definition=st.sampled_from(["", "", *DEFINITIONS]),
    )
    def rename(self, shard: ShardId, column: str, other: str, definition: str) -> None:
        schema = self.sources[shard.source].schemas.get(shard)
        if schema is None or schema.column(column) is None or schema.column(other) is not None:
            return
        action = f"RENAME COLUMN {column} TO {other}"
        if definition:
            action = f"CHANGE COLUMN {column} {other} {definition}"
        self._alter(shard, action)

    @rule(shard=st.sampled_from(SHARDS), first=st.permutations(COLUMNS))
    def swap(self, shard: ShardId, first: list[str]) -> None:
        schema = self.sources[shard.source].schemas.get(shard)
        one, other = first[:2]
        if schema is None or schema.column(one) is None or schema.column(other) is None:
            return
        self._alter(shard, f"RENAME COLUMN {one} TO {other}, RENAME COLUMN {other} TO {one}")

    @rule(
        order=st.permutations(SHARDS),
        columns=st.permutations(COLUMNS),
        keys=st.lists(st.integers(0, 3), min_size=4, max_size=4),
        values=st.lists(st.sampled_from(VALUES), min_size=8, max_size=8),
        steps=st.integers(0, 30),
    )
    def rename_on_all(
        self,
        order: list[ShardId],
        columns: list[str],
        keys: list[int],
        values: list[object],
        steps: int,
    ) -> None:
        """Rows before and behind each rename; the sink runs meanwhile."""
        for number, shard in enumerate(order):
            self._put(shard, keys[number], values[number])
            self.rename(shard, columns[0], columns[1], "")
            self._put(shard, keys[-1 - number], values[-1 - number])
            self.sources[shard.source].settle()
            self._decide_all(shard.source)
            self.run_the_sink(steps)

    def _put(self, shard: ShardId, key: int, value: object) -> None:
        """A row that has that value wherever it fits."""
        schema = self.sources[shard.source].schemas.get(shard)
        if schema is not None:
            image = {
                c.name: value if accepts(c, value) else next(v for v in VALUES if accepts(c, v))
                for c in schema.columns
            }
            image["id"] = number_of(shard, key)
            self._send_row(shard, key, schema, image)

    def _alter(self, shard: ShardId, action: str) -> None:
        source = self.sources[shard.source]
        schema = source.schemas[shard]
        statement = parse(f"ALTER TABLE t {action}", CONTEXT)
        assert isinstance(statement, AlterTable)
        result = apply_alter(schema, statement, shard.table, CONTEXT)
        rows = self._altered_rows(shard, schema, result)
        if rows is not None:
            source.rows[shard] = rows
            self._send_ddl(source, [(shard, result.schema, result.lineage)])

    def _send_row(
        self, shard: ShardId, key: int, schema: TableSchema, image: dict[str, object] | None
    ) -> None:
        super()._send_row(shard, key, schema, image)
        self.may_differ[shard].discard(key)

    def _decided(self, decision: Decision) -> None:
        for fixup in decision.fixups:
            source = self.sources[fixup.shard.source]
            self.may_differ[fixup.shard] |= set(source.rows.get(fixup.shard, ()))
            # This world reads nothing again: what those rows hold is not the shard's any more.
            self.target.orphans |= numbers_of(fixup.shard)
        # What their tables do until they come back, the target does not hear.
        self.taken_out.update(decision.leaves)

    def _check_cells(self, known: Decisions) -> None:
        """Every row of every shard that flows is in the target, under its columns' names."""
        if TARGET not in known.targets or self.sink.stuck:
            return
        bound = bindings(known.targets[TARGET], self.target.executed)
        assert isinstance(self.target, FillingTarget)
        for name, shard in self.state.shards.items():
            source = self.sources[name.source]
            if shard.hold is not None or shard.real is None or name not in source.schemas:
                continue
            if name in self.taken_out:
                continue
            names = {
                c.column.name: bound[c.id].name
                for c in shard.real.columns
                if c.id not in shard.left_out
            }
            for key, row in source.rows[name].items():
                number = number_of(name, key)
                cells = self.target.cells[number]
                if key in self.may_differ[name]:
                    continue
                for column, value in row.items():
                    if column not in names:
                        continue  # a command left it out
                    if names[column] in self.target.converted or column == "id":
                        continue
                    found = self._found(cells, names[column])
                    assert found == value, (str(name), key, column, row, cells)

    def _found(self, cells: dict[str, object], name: str) -> object:
        """What a row has in a column, under whichever of its two names while it is copied."""
        by_id = {c.id: c.column.name for c in self.state.columns}
        for copy in self.state.copies:
            old, new = by_id.get(copy.before), by_id.get(copy.after)
            if old is not None and new is not None and name in (old, new):
                return cells[new] if cells[old] is None else cells[old]
        return cells[name]


def _default(column: Column) -> object:
    default = column.default
    if default is None or default.kind is DefaultKind.NULL:
        return None
    return int(default.text) if FAMILIES[column.type.name] == "number" else default.text


def test_the_machine_plays_what_it_is_about() -> None:
    """A copy opens and ends in it; else its checks would say nothing."""
    machine = CopyMachine()
    machine.start(1, 5, Mode.OPTIMISTIC)
    for shard in SHARDS[:3]:
        machine._put(shard, 0, None)
        machine._put(shard, 1, 7)
    machine.rename(SHARDS[0], "a", "b", "")
    for shard in SHARDS[:3]:
        machine._put(shard, 2, 7)
        machine._put(shard, 1, None)
    machine.let_everything_arrive()
    assert machine.state.copies
    for shard in SHARDS[1:3]:
        machine.rename(shard, "a", "b", "")
    machine.let_everything_arrive()
    assert not machine.state.copies
    assert machine.target.schema is not None
    assert [c.name for c in machine.target.schema.columns] == ["id", "b"]
    assert not any(d.outcome is Outcome.HOLD for d in machine.ddl if d is not None)


TestCopies = CopyMachine.TestCase
TestCopies.settings = SETTINGS
