"""Values that are read again, or come late: while other shards wait, or an operator says wait.

In the world of ``existing_rows_machine``, whose rules alone come seldom to where this begins.
"""

from __future__ import annotations

from collections.abc import Container

from hypothesis import strategies as st
from hypothesis.stateful import rule

from shardmerge.schemas.ddl.apply.statements import apply_alter
from shardmerge.schemas.ddl.changes import AlterTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.errors import SourceError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.policies import ExistingRows
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.properties.barrier_world import COLUMNS, SHARDS, VALUES
from tests.properties.existing_rows_machine import MORE_DEFINITIONS, ExistingRowsMachine
from tests.toy_target import CONTEXT


class LateValuesMachine(ExistingRowsMachine):
    """The machine of existing rows, with histories in which values are late."""

    @rule(
        order=st.permutations(SHARDS[:3]),
        column=st.sampled_from(COLUMNS),
        held=st.booleans(),
        between=st.sampled_from(["nothing", "row", "new row"]),
        rests=st.booleans(),
        arrives=st.booleans(),
    )
    def make_a_column_anew_while_others_wait(  # noqa: PLR0917 - a rule's arguments are drawn
        self,
        order: list[ShardId],
        column: str,
        held: bool,
        between: str,
        rests: bool,
        arrives: bool,
    ) -> None:
        """The first shard's values are in it, and are read again while the last one is paused."""
        first, second, last = order
        if self.schema_of(first) is None:
            return
        for shard in order:
            self.alter_as(shard, f"DROP {column}")
        self.alter_as(first, f"ADD {column} ENUM('x')")
        self.alter_as(second, f"ADD {column} ENUM('x','y')")
        self._put(first, 1, "x")
        self._put(first, 2, "x")
        if arrives:
            self.let_everything_arrive()
        self.pause_or_resume(last, "pause")
        self._put(last, 1, None)
        self.alter_as(last, "ADD z INT")
        if held and self.alter_as(last, "ADD w DATE"):
            self.sources[last.source].settle()
            self._decide_all(last.source)
            self.alter_as(first, "ADD w INT")
            self._put(first, 3, "x")
        self._let_the_sources_settle()
        self._let_the_sink_rest()
        self.alter_as(second, f"DROP {column}, ADD {column} ENUM('x','z')")
        self.sources[second.source].settle()
        self._decide_all()
        self.read_a_chunk(first.source, 4)
        if between == "row":
            self._put(first, 1, "x")
        elif between == "new row":
            self._put(first, 0, "x")
        self.send_a_chunk(first.source)
        self.sources[first.source].settle()
        if rests:
            self._let_the_sink_rest()
        for shard in (first, last):
            self.alter_as(shard, "DROP w")
        self.alter_as(last, "DROP z")
        if arrives:
            self.let_everything_arrive()

    @rule(
        shard=st.sampled_from(SHARDS[:3]),
        column=st.sampled_from(COLUMNS),
        definition=st.sampled_from(MORE_DEFINITIONS),
        value=st.sampled_from(VALUES),
        steps=st.integers(0, 80),
    )
    def add_while_disabled(
        self, shard: ShardId, column: str, definition: str, value: object, steps: int
    ) -> None:
        """A column that nobody has, and rows with it, before the target may have it."""
        schemas = [s for s in map(self.schema_of, SHARDS) if s is not None]
        self._let_the_sources_settle()
        taken = {c.column.name for c in self.state.columns} | {*self.state.names.values()}
        if column in taken or any(s.column(column) for s in schemas) or self.state.held:
            return
        self._put(shard, 0, value)
        self._command(CommandKind.DISABLE, None)
        self.alter_as(shard, f"ADD {column} {definition}")
        self._put(shard, 1, value)
        self._let_the_sources_settle()
        self.run_the_sink(steps)
        self._command(CommandKind.ENABLE, None)
        self._decide_all()
        self.read_a_chunk(shard.source, 4)
        self.send_a_chunk(shard.source)
        self.run_the_sink(steps)

    @rule(
        order=st.permutations(SHARDS[:3]),
        columns=st.permutations(COLUMNS),
        value=st.sampled_from(VALUES),
        goes=st.booleans(),
        steps=st.integers(0, 30),
    )
    def add_while_held(
        self, order: list[ShardId], columns: list[str], value: object, goes: bool, steps: int
    ) -> None:
        """A column with a default, rows before and behind it, and then perhaps no default."""
        shard, other, _ = order
        column, free, _ = columns
        if not self.alter_as(other, f"ADD {free} DATE"):
            return
        self._put(shard, 0, value)
        self._let_the_sources_settle()
        if self.alter_as(shard, f"ADD {free} INT"):
            self._put(shard, 1, value)
            self.alter_as(shard, f"ADD {column} INT NOT NULL DEFAULT 5")
            self._put(shard, 2, value)
            if goes:
                self.alter_as(shard, f"ALTER {column} DROP DEFAULT")
            self._let_the_sources_settle()
            self.run_the_sink(steps)
            self.alter_as(shard, f"DROP {free}")

    @rule(
        order=st.permutations(SHARDS[:3]),
        column=st.sampled_from(COLUMNS),
        reads=st.sets(st.sampled_from(["s1", "s2"])),
        steps=st.integers(0, 60),
        another=st.booleans(),
        arrives=st.booleans(),
    )
    def forbid_nulls_without_strict_mode(  # noqa: PLR0917 - a rule's arguments are drawn
        self,
        order: list[ShardId],
        column: str,
        reads: set[str],
        steps: int,
        another: bool,
        arrives: bool,
    ) -> None:
        """The servers make zeros of NULLs, which the target has until they are read again."""
        if self.existing_rows is not ExistingRows.REREAD:
            return  # it would have them for good
        for shard in order:
            if (schema := self.schema_of(shard)) is None or schema.column(column) is None:
                return
        for shard in order:
            self._put(shard, 1, None)
            self.alter_as(shard, f"MODIFY {column} INT NOT NULL", mended=[column])
            self.sources[shard.source].settle()
            self._decide_all()
            if shard.source in reads:
                self.read_a_chunk(shard.source, 1)
                self.send_a_chunk(shard.source)
            self.run_the_sink(steps)
        if another:
            self.alter_as(order[0], "ADD w INT")
        if arrives:
            self.let_everything_arrive()

    def alter_as(self, shard: ShardId, actions: str, mended: Container[str] = ()) -> bool:
        """One ALTER TABLE, if the shard's server takes it; see ``altered``."""
        schema = self.schema_of(shard)
        if schema is None:
            return False
        statement = parse(f"ALTER TABLE t {actions}", CONTEXT)
        assert isinstance(statement, AlterTable)
        try:
            result = apply_alter(schema, statement, shard.table, CONTEXT)
        except SourceError:
            return False
        rows = self._altered_rows(shard, schema, result, mended)
        if rows is None:
            return False
        source = self.sources[shard.source]
        source.rows[shard] = rows
        self._send_ddl(source, [(shard, result.schema, result.lineage)])
        return True
