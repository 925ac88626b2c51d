"""Shards whose tables are read as a whole: what the target had of them goes, and all of it comes.

The same world as that of first snapshots, with what may happen there. Its tables have a primary
key, so that it can look at each row; they are asked for and read as those without one are.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import rule

from shardmerge.agents.coordination import coordinator
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import Fixup, FixupKind, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.reloads import Reload, reloads_text
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.properties.barrier_machine import SETTINGS
from tests.properties.barrier_world import SHARDS, TARGET, number_of
from tests.properties.test_restarted_snapshots import OriginRestartMachine, RestartMachine
from tests.toy_kafka import Row
from tests.toy_server import filled
from tests.toy_target import CONTEXT

ROWS = st.lists(st.tuples(st.sampled_from(SHARDS), st.integers(0, 3)), max_size=4)
"""Shards and keys of theirs."""


class ReloadMachine(RestartMachine):
    """An operator asks, the watchdog reads."""

    @rule(which=st.integers(0, 3))
    def ask_for_whole_tables(self, which: int) -> None:
        live = sorted(self.state.shards)
        if not live or self.state.awaited:
            return
        self.commands += 1
        change = ChangeId("p.commands", self.commands)
        said = OperatorCommand(change, TARGET, CommandKind.REREAD, live[which % len(live)])
        step = coordinator.obey(self.state, said, context=CONTEXT)
        assert step.decision is not None
        decision, self.state = step.decision, step.state
        if decision.outcome is not Outcome.REFUSED:
            asked = self._asked_with(live[which % len(live)])
            fixups = tuple(Fixup(name, FixupKind.WHOLE, (), "asked") for name in asked)
            decision = replace(decision, fixups=fixups)
            self.state = replace(self.state, awaited=asked)
        self.outbox.append(decision)

    def _asked_with(self, shard: ShardId) -> tuple[ShardId, ...]:
        return (shard,) if self.origin.tells_shards_apart else tuple(sorted(self.state.shards))

    @rule(late=ROWS, behind=st.lists(st.sampled_from(SHARDS), max_size=2), steps=st.integers(0, 60))
    def read_whole_tables(
        self, late: list[tuple[ShardId, int]], behind: list[ShardId], steps: int
    ) -> None:
        """What the stopped connector has not sent stands before the reading, and comes behind.

        What the shards write then can be read before anybody is told.
        """
        awaited = self.state.awaited
        names = sorted({shard.source for shard in awaited})
        if not awaited or any(self._source(name).reads is not None for name in names):
            return
        self._decide_all()
        found = []
        for name in names:
            source = self._source(name)
            source.settle()
            rows = [
                row for shard, key in late if shard.source == name for row in self._late(shard, key)
            ]
            place = source.next_position()
            began = source.clock_ms + 1
            for shard in awaited:
                if shard.source == name and (schema := self.schema_of(shard)) is not None:
                    columns = tuple(c.name for c in schema.columns)
                    for key, had in source.rows[shard].items():
                        image = {c.name: had.get(c.name, filled(c)) for c in schema.columns}
                        source.rows[shard][key] = image
                        self.number += 1
                        whole = number_of(shard, key)
                        source.send(
                            Row(self.number, shard, place, whole, columns, dict(image), read=True)
                        )
                    found.append(Reload(shard, place, began))
            source.settle()
            for row in rows:
                source.send(row)
        for shard in behind:
            self._write(shard)
            self.sources[shard.source].settle()
        self._decide_all()
        self.run_the_sink(steps)
        if found:
            self._command(CommandKind.RELOADED, None, reloads_text(found))

    def _late(self, shard: ShardId, key: int) -> list[Row]:
        """A row that goes before the reading, of which the connector tells after it."""
        source, schema = self.sources[shard.source], self.schema_of(shard)
        if schema is None or key not in source.rows[shard]:
            return []
        del source.rows[shard][key]
        self.number += 1
        names = tuple(c.name for c in schema.columns)
        place = source.next_position()
        return [Row(self.number, shard, place, number_of(shard, key), names, None)]

    @rule(late=ROWS, behind=st.lists(st.sampled_from(SHARDS), max_size=2), steps=st.integers(0, 60))
    def ask_and_read(
        self, late: list[tuple[ShardId, int]], behind: list[ShardId], steps: int
    ) -> None:
        self._let_the_sources_settle()
        self.run_the_sink(steps)
        self.ask_for_whole_tables(0)
        self.read_whole_tables(late, behind, steps)

    @rule()
    def let_everything_arrive(self) -> None:
        """No rows arrive of shards that wait for a reading, which waits for one that is held."""
        self._let_the_sources_settle()
        for shard in sorted(self.state.awaited):
            if self.schema_of(shard) is None:
                # The connector began again behind the DROP TABLE, so no record tells of it.
                self._command(CommandKind.LEAVE, shard)
        self.read_whole_tables([], [], 0)
        if self.state.awaited:
            assert self.state.held
            self._let_the_sink_rest()
        else:
            super().let_everything_arrive()


class OriginReloadMachine(ReloadMachine, OriginRestartMachine):
    """Where the target tells whose a row is."""


def test_an_empty_table_whose_snapshot_began_again_keeps_nobody_waiting() -> None:
    """No row will come that tells whether its snapshot read any; the reload takes all rows."""
    machine = ReloadMachine()
    machine.start(partitions=1, batch=2, shared="", shards=1)
    machine.let_everything_arrive()
    machine.create_or_drop(SHARDS[2])
    machine.let_everything_arrive()
    machine.ask_for_whole_tables(0)
    machine.begin_again("s2", quiet=False)
    machine.let_everything_arrive()


TestReloads = ReloadMachine.TestCase
TestReloads.settings = SETTINGS
TestReloadsWithOrigin = OriginReloadMachine.TestCase
TestReloadsWithOrigin.settings = SETTINGS
