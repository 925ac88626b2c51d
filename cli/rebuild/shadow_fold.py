"""The decisions of a table that is made anew from the shards' present schemas. Pure.

Up to some version the target's log is folded as the coordinator folds it. There the table begins,
as ``renewals.renewed`` makes it. From then on each record is folded twice: for the target, and for
the table. Each record has one decision in both folds, so both count the same versions.
"""

from __future__ import annotations

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.handlers import CoordinatorHandler
from shardmerge.schemas.lattice.origin_columns import row_columns
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.origin import Origin
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision, JoinedSchema, Outcome, Release
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand, Renewal
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange
from shardmerge.spark_sink.rebuilding.shadow import Shadow, shadow_decision

_ASKED = ChangeId("shardmerge rebuild", 0)
"""The identity of a command that nobody gives: the fold asks what would be decided."""


class ShadowFold:
    """Folds one target's log.

    Args:
        pipeline: Of the target.
        target: The target.
        version: Of the target's latest decision when the table begins.
        origin: The table's origin columns; None for those that the target has then.

    Attributes:
        of_target: The target's state, as far as the log is folded.
        of_table: The table's state; None before the table begins, and if there can be none.
        beginning: What ``renew`` would be answered where the table begins; None before.
        joined: The target's state where the table begins; None before.
    """

    def __init__(
        self, pipeline: Pipeline, target: TargetTable, version: int, origin: Origin | None
    ) -> None:
        self._coordinator = CoordinatorHandler(pipeline)
        self._version, self._origin = version, origin
        self.of_target = self._coordinator.initial(target)
        self.of_table: TargetState | None = None
        self.beginning: Decision | None = None
        self.joined: TargetState | None = None
        self._decisions: dict[int, Decision] = {}

    @property
    def origin(self) -> Origin:
        """The table's origin columns."""
        if self._origin is not None:
            return self._origin
        return (self.joined or self.of_target).policies.origin

    def take(self, came: SchemaChange | OperatorCommand) -> None:
        """Fold the next record of the log; one that was there before changes nothing."""
        step = self._coordinator.step(self.of_target, came)
        if step.state.version == self.of_target.version:
            return
        self.of_target = step.state
        if self.of_table is not None:
            own = self._coordinator.step(self.of_table, came)
            assert own.decision is not None
            self.of_table = own.state
            self._decisions[own.decision.version] = own.decision
        if self.of_target.version == self._version:
            self._begin()

    def _begin(self) -> None:
        state = self.joined = self.of_target
        step_state, self.beginning = self._renewed(state)
        if self.beginning.outcome is not Outcome.REFUSED:
            self.of_table = replace(step_state, version=state.version, seen=state.seen)

    def _renewed(self, state: TargetState) -> tuple[TargetState, Decision]:
        argument = str(Renewal(0, state.version, self.origin))
        asked = OperatorCommand(_ASKED, state.target, CommandKind.RENEW, None, argument)
        step = self._coordinator.step(state, asked)
        assert step.decision is not None
        return step.state, step.decision

    def decision(self, version: int) -> Decision | None:
        """The table's own decision; None if it is not folded yet, or comes before the table."""
        return self._decisions.get(version)

    def as_read(self, decision: Decision, shadow: Shadow) -> Decision | None:
        """A decision of the ddl topic as it is decided for the table.

        Args:
            decision: Any decision of the pipeline.
            shadow: The table.

        Returns:
            None if the log is not folded so far.

        Raises:
            ContractError: See ``shadow_decision``.
        """
        if decision.target != shadow.target:
            return shadow_decision(decision, shadow)
        if decision.version > self._version:
            own = self.decision(decision.version)
            return None if own is None else shadow_decision(own, shadow)
        if self.beginning is None:
            return None
        columns, key = row_columns(decision.columns, decision.key, self.origin)
        releases = decision.releases
        if decision.version == self._version:
            # The table takes what these shards are held for.
            opened: dict[object, Release] = {each.shard: each for each in releases}
            opened |= {each.shard: each for each in self.beginning.releases}
            releases = tuple(sorted(opened.values()))
        early = replace(decision, columns=columns, key=key, releases=releases, origin=None)
        return shadow_decision(early, shadow)

    def joined_schema(self, table: TargetTable) -> JoinedSchema:
        """The table's joined schema, as far as the log is folded."""
        state = self.of_table
        assert state is not None
        return JoinedSchema(
            table, state.version, state.columns, state.schema, len(state.shards), len(state.held)
        )

    def difference(self) -> str:
        """Why the target's state would not become the table's by ``renew`` now; "" if it would."""
        if self.of_table is None:
            return "the table has not begun"
        renewed, answer = self._renewed(self.of_target)
        if answer.outcome is Outcome.REFUSED:
            return answer.reason
        for what, there, here in zip(
            ("table", "columns", "shards"), _facts(renewed), _facts(self.of_table), strict=True
        ):
            if there != here:
                return f"its {what} would be others than those that were decided for it"
        return ""


def _facts(state: TargetState) -> tuple[object, ...]:
    """What later decisions depend on. The order of a table's columns is no part of it."""
    shards = {name: (s.effective, s.actual, s.hold) for name, s in state.shards.items()}
    columns = {column.id: column.column for column in state.columns}
    return state.schema and _unordered(state.schema), columns, shards


def _unordered(schema: TableSchema) -> TableSchema:
    return replace(schema, columns=tuple(sorted(schema.columns, key=lambda c: c.name)))
