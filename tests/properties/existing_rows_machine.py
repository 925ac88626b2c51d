"""Rows that change without row events, in the offset barrier's world: TRUNCATE, DDL, fix-ups.

What the shards' own servers hold at the end is what the target must hold: every row, every value,
whatever TRUNCATE, DDL, the decisions' statements and incremental snapshots did to them on the way.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from shardmerge.schemas.ddl.apply.statements import AlterResult
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import ExistingRows, Mode, RenamePolicy, RowsPolicy
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.records.decisions import Decision, FixupKind
from shardmerge.schemas.records.operator_commands import CommandKind
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.statements import bindings
from tests.properties.barrier_machine import BarrierMachine
from tests.properties.barrier_world import (
    COLUMNS,
    SHARDS,
    TARGET,
    VALUES,
    Rows,
    number_of,
    numbers_of,
)
from tests.toy_kafka import Change, Ddl, Row, ToySource
from tests.toy_server import Cells, ServerTarget, altered
from tests.toy_snapshots import ToySnapshots
from tests.toy_target import Rejected, accepts

ORIGINS = [
    NO_ORIGIN,
    Origin((OriginColumn(OriginPart.SHARD, "o"),)),
    Origin(
        (
            OriginColumn(OriginPart.SOURCE, "o"),
            OriginColumn(OriginPart.DATABASE, "p"),
            OriginColumn(OriginPart.TABLE, "q"),
        )
    ),
]
MORE_DEFINITIONS = ["INT DEFAULT 7", "INT NOT NULL DEFAULT 5", "VARCHAR(9) DEFAULT 'y'", "BIGINT"]


class ExistingRowsMachine(BarrierMachine):
    """The barrier's machine with servers that keep rows.

    Attributes:
        left: Per shard, keys of rows that it has no longer and that stay in the target.
        unsure: The same of rows that may stay, and may go.
        may_differ: Per shard, keys of rows that a decision said may differ.
        taken_out: Shards that were once taken out while they were held.
    """

    target_class = ServerTarget

    @initialize(
        partitions=st.integers(1, 3),
        batch=st.sampled_from([2, 5, 100]),
        mode=st.sampled_from(Mode),
        shards=st.sampled_from([1, 3, 3]),
        renames=st.sampled_from(RenamePolicy),
        origin=st.sampled_from([NO_ORIGIN, *ORIGINS]),
        policies=st.tuples(st.sampled_from(RowsPolicy), st.sampled_from(RowsPolicy)),
        existing_rows=st.sampled_from([ExistingRows.REREAD, *ExistingRows]),
        policy_moves=st.integers(0, 7).map(lambda drawn: drawn == 7),
    )
    def start(  # noqa: PLR0917 - an initializer's arguments are drawn
        self,
        partitions: int,
        batch: int,
        mode: Mode,
        shards: int = 3,
        renames: RenamePolicy = RenamePolicy.MAP,
        origin: Origin = NO_ORIGIN,
        policies: tuple[RowsPolicy, RowsPolicy] = (RowsPolicy.DELETE, RowsPolicy.DELETE),
        existing_rows: ExistingRows = ExistingRows.REREAD,
        policy_moves: bool = False,
    ) -> None:
        self.renames, self.origin, self.existing_rows = renames, origin, existing_rows
        self.on_truncate, self.on_drop = policies
        self.policy_moves, self.policy_moved = policy_moves, False
        self._route()
        self.left: dict[ShardId, set[int]] = {shard: set() for shard in SHARDS}
        self.unsure: dict[ShardId, set[int]] = {shard: set() for shard in SHARDS}
        self.may_differ: dict[ShardId, set[int]] = {shard: set() for shard in SHARDS}
        self.taken_out: set[ShardId] = set()
        self.snapshots: dict[str, ToySnapshots] = {}
        self.begin(partitions, batch, mode, shards)

    # --- what befalls rows

    @rule(shard=st.sampled_from(SHARDS), partition=st.integers(0, 2))
    def truncate(self, shard: ShardId, partition: int) -> None:
        """One row event in one of the partitions; its schema change concerns nobody."""
        source = self.sources[shard.source]
        if shard not in source.schemas:
            return
        self.number += 1
        position = source.next_position()
        source.send(Row(self.number, shard, position, partition, (), None, truncates=True))
        source.send(Ddl(position, ()))
        self._snapshots_of(shard).table_changed(shard)
        rows = {number_of(shard, key) for key in source.rows[shard]}
        source.rows[shard] = {}
        deletes = self.on_truncate is RowsPolicy.DELETE
        if self.policy_moved or (deletes and not self.origin.tells_shards_apart):
            self.unsure[shard] |= rows | self.left[shard]
            self.left[shard] = set()
        elif deletes:
            self.left[shard], self.unsure[shard] = set(), set()
            return
        else:
            self.left[shard] |= rows
        self.target.orphans |= rows

    @rule(
        shard=st.sampled_from(SHARDS),
        partition=st.integers(0, 2),
        value=st.sampled_from(VALUES),
        behind=st.sets(st.integers(0, 3)),
        which=st.integers(0, 2),
        steps=st.integers(0, 40),
        together=st.booleans(),
        dies=st.booleans(),
        arrives=st.booleans(),
    )
    def truncate_among_rows(  # noqa: PLR0917 - a rule's arguments are drawn
        self,
        shard: ShardId,
        partition: int,
        value: object,
        behind: set[int],
        which: int,
        steps: int,
        together: bool,
        dies: bool,
        arrives: bool,
    ) -> None:
        """Rows before and behind it in all partitions, which come in any order; the sink runs."""
        source = self.sources[shard.source]
        for key in range(4):
            self._put(shard, key, value)
        if not together:
            source.settle()
            self._decide_all(shard.source)
        self.truncate(shard, partition)
        for key in sorted(behind):
            self._put(shard, key, value)
        source.commit()
        for _ in range(3):
            source.land_marker(which)
            self.run_the_sink(steps)
        if dies and self.policy_moves:
            other = next(p for p in RowsPolicy if p is not self.on_truncate)
            self.start_the_sink_with_another_policy(other)
        elif dies:
            self.kill_the_sink()
        if arrives:
            self.let_everything_arrive()

    @rule(
        shard=st.sampled_from(SHARDS),
        column=st.sampled_from(COLUMNS),
        definition=st.sampled_from(MORE_DEFINITIONS),
        keys=st.sets(st.integers(0, 3)),
        value=st.sampled_from(VALUES),
        arrives=st.booleans(),
    )
    def add_to_rows(  # noqa: PLR0917 - a rule's arguments are drawn
        self,
        shard: ShardId,
        column: str,
        definition: str,
        keys: set[int],
        value: object,
        arrives: bool,
    ) -> None:
        """Rows, a column that they are given (anew, if they had it), and rows behind it."""
        schema = self.schema_of(shard)
        if schema is None:
            return
        for key in sorted(keys):
            self._put(shard, key, value)
        if schema.column(column) is not None:
            self.alter(shard, column, definition, column, "DROP", both=False)
        self.alter(shard, column, definition, column, "MODIFY", both=False)
        self._put(shard, len(keys) % 4, value)
        if arrives:
            self.let_everything_arrive()

    @rule(shard=st.sampled_from(SHARDS))
    def ask_for_a_reread(self, shard: ShardId) -> None:
        self._command(CommandKind.REREAD, shard)

    @rule(
        shard=st.sampled_from(SHARDS),
        value=st.sampled_from(VALUES),
        size=st.integers(1, 4),
        between=st.sampled_from(["nothing", "rows", "change", "truncate"]),
        steps=st.integers(0, 30),
    )
    def read_again_while_things_happen(
        self, shard: ShardId, value: object, size: int, between: str, steps: int
    ) -> None:
        """Rows that are read again, and what the binlog has between the marks and behind them."""
        source = self.sources[shard.source]
        self._put(shard, 1, value)
        self._put(shard, 2, value)
        source.settle()
        self._decide_all()
        self.ask_for_a_reread(shard)
        self._decide_all()
        self.read_a_chunk(shard.source, size)
        match between:
            case "rows":
                self.delete(shard, 1)
                self._put(shard, 2, None)
            case "change":
                self.alter(shard, "b", "INT NOT NULL DEFAULT 5", "b", "DROP", both=False)
            case "truncate":
                self.truncate(shard, size)
                self._put(shard, 2, value)
        self.run_the_sink(steps)
        self.send_a_chunk(shard.source)
        self._put(shard, 3, value)
        source.commit()
        source.finish()
        self.run_the_sink(steps)

    @rule(source=st.sampled_from(["s1", "s2"]), size=st.integers(1, 3))
    def read_a_chunk(self, source: str, size: int) -> None:
        self._snapshots_of(source).read_chunk(size)

    @rule(source=st.sampled_from(["s1", "s2"]))
    def send_a_chunk(self, source: str) -> None:
        found = self._snapshots_of(source).send_chunk()
        if found is None:
            return
        shard, rows = found
        schema = self.schema_of(shard)
        assert schema is not None
        names = tuple(c.name for c in schema.columns)
        position = self.sources[source].next_position()
        for key, image in rows.items():
            self.number += 1
            number = number_of(shard, key)
            self.sources[source].send(
                Row(self.number, shard, position, number, names, image, reread=True)
            )
        if not self._snapshots_of(source).is_reading(shard):
            self.sources[source].tell_scanned(shard)

    @precondition(lambda self: self.policy_moves)
    @rule(policy=st.sampled_from(RowsPolicy))
    def start_the_sink_with_another_policy(self, policy: RowsPolicy) -> None:
        """What becomes of rows that were truncated and not passed is anybody's guess then."""
        for shard in SHARDS:
            self.unsure[shard] |= numbers_of(shard)
        self._move_policy(policy)

    # --- the world's ways, with what rows there are

    def _put(self, shard: ShardId, key: int, value: object) -> None:
        """A row that has that value wherever it fits."""
        schema = self.schema_of(shard)
        if schema is not None:
            image = {
                c.name: value if accepts(c, value) else next(v for v in VALUES if accepts(c, v))
                for c in schema.columns
            }
            image["id"] = number_of(shard, key)
            self._send_row(shard, key, schema, image)

    def _send_row(self, shard: ShardId, key: int, schema: TableSchema, image: Cells | None) -> None:
        super()._send_row(shard, key, schema, image)
        self._snapshots_of(shard).row_changed(shard, key)
        for known in (self.left, self.unsure, self.may_differ):
            known[shard].discard(number_of(shard, key))

    def _send_ddl(
        self, source: ToySource, changes: Sequence[Change], *, snapshot: bool = False
    ) -> None:
        had = {shard: {number_of(shard, key) for key in source.rows.get(shard, ())}
               for shard, _, _ in changes}  # fmt: skip
        super()._send_ddl(source, changes, snapshot=snapshot)
        for shard, after, _ in changes:
            if after is None:
                source.rows[shard] = {}
                if self._deletes_dropped():
                    self.left[shard], self.unsure[shard] = set(), set()
                else:
                    self.left[shard] |= had[shard]
            self._snapshots_of(shard).table_changed(shard)

    def _altered_rows(
        self,
        shard: ShardId,
        before: TableSchema,
        result: AlterResult,
        mended: Container[str] = (),
    ) -> Rows | None:
        rows = self.sources[shard.source].rows[shard]
        try:
            return {key: altered(cells, before, result, mended) for key, cells in rows.items()}
        except Rejected:
            return None

    def _decided(self, decision: Decision) -> None:
        shard = decision.shard
        before = self.state.shards.get(shard) if shard else None
        if shard and before and before.hold and not decision.live and not self._deletes_dropped():
            # Its rows that waited, and among them perhaps a TRUNCATE, are passed over.
            self.unsure[shard] |= numbers_of(shard)
            self.left[shard] = set()
        for left in decision.leaves:
            # What its table does until it comes back, the target does not hear.
            self.taken_out.add(left)
        for fixup in decision.fixups:
            if fixup.kind in (FixupKind.ACCEPT, FixupKind.HOLD):
                rows = self.sources[fixup.shard.source].rows.get(fixup.shard, {})
                self.may_differ[fixup.shard] |= {number_of(fixup.shard, key) for key in rows}

    def _read_again(self, shard: ShardId) -> None:
        self._snapshots_of(shard).ask(shard)

    def _let_the_sources_settle(self) -> None:
        super()._let_the_sources_settle()
        for name, snapshots in self.snapshots.items():
            while snapshots.asked:
                snapshots.read_chunk(2)
                self.send_a_chunk(name)
        super()._let_the_sources_settle()

    def _let_the_sink_rest(self) -> None:
        super()._let_the_sink_rest()
        if self.sink.unknown_rows:
            assert not self.origin.tells_shards_apart
            self._move_policy(RowsPolicy.KEEP)
            super()._let_the_sink_rest()
        # Where a shard stands for good, or is paused, rows before its TRUNCATE are not applied.
        paused = {name for name, shard in self.state.shards.items() if shard.paused}
        assert self.sink.truncations.keys() <= self.sink.stuck | paused

    def _snapshots_of(self, what: ShardId | str) -> ToySnapshots:
        name = what if isinstance(what, str) else what.source
        return self.snapshots.setdefault(name, ToySnapshots(self.sources[name]))

    def _deletes_dropped(self) -> bool:
        return self.on_drop is RowsPolicy.DELETE and self.origin.tells_shards_apart

    def _route(self) -> None:
        self.routes = (
            RoutingRule(".*", ".*", ".*", TARGET.database, TARGET.table,
                        on_truncate=self.on_truncate),
        )  # fmt: skip

    def _move_policy(self, policy: RowsPolicy) -> None:
        for shard in SHARDS:
            self.unsure[shard] |= self.left[shard]
            self.left[shard] = set()
        self.on_truncate, self.policy_moved = policy, True
        self._route()
        self.kill_the_sink()

    # --- what must be true

    def _check_cells(self, known: Decisions) -> None:
        """The target holds the rows of the shards, whatever happened to them on the way."""
        if self.sink.stuck:
            return
        for shard in SHARDS:
            state = self.state.shards.get(shard)
            if shard not in self.taken_out and (state is None or state.hold is None):
                self._check_shard(shard, known)

    def _check_shard(self, shard: ShardId, known: Decisions) -> None:
        found = {n: row for n, row in self.target.cells.items() if n in numbers_of(shard)}
        rows = {number_of(shard, key): row
                for key, row in self.sources[shard.source].rows.get(shard, {}).items()}  # fmt: skip
        must = rows.keys() | self.left[shard]
        assert must <= found.keys() <= must | self.unsure[shard], (shard, must, found)
        if not rows:
            return
        names = self._names(shard, known)
        for number, row in rows.items():
            for part in self.origin.columns:
                assert found[number][part.name] == part.part.value_in(shard)
            if number in self.may_differ[shard]:
                continue
            for column, value in row.items():
                if column not in names:
                    continue  # a command left it out
                got = self._found(found[number], names[column])
                assert got == value, (str(shard), number, column, row, found[number])

    def _names(self, shard: ShardId, known: Decisions) -> dict[str, str]:
        """The shard's names of columns → the target's."""
        target = known.targets[TARGET]
        bound = bindings(target, self.target.executed)
        gate = target.shards[shard].gates[-1]
        left_out = ("", *gate.left_out)
        return {c.column.name: bound[c.id].name for c in gate.columns if c.id not in left_out}

    def _found(self, cells: Cells, name: str) -> object:
        """What a row has in a column, under whichever of its two names while it is copied."""
        by_id = {c.id: c.column.name for c in self.state.columns}
        for copy in self.state.copies:
            old, new = by_id.get(copy.before), by_id.get(copy.after)
            if old == name and new is not None:
                return cells[new] if cells[old] is None else cells[old]
        return cells[name]
