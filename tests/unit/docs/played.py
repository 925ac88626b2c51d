"""Shards whose statements go through the tracker and the coordinator, as those of a pipeline do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.tracking.tracked import LastStatement, Tracked
from shardmerge.agents.tracking.tracker import track
from shardmerge.connectors.debezium.envelope import SchemaChangeEvent
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import Mode
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.routes import routing_rule
from shardmerge.schemas.target.dialects.dialects import dialect_of


@dataclass(frozen=True, slots=True)
class Answer:
    """A decision, as far as documents show it.

    Attributes:
        outcome: ``emit``, ``no-op`` or ``hold``.
        statements: For the target, without quotes around names.
    """

    outcome: str
    statements: tuple[str, ...]


class Played:
    """Sources whose tables are merged into one target.

    Args:
        target: ``database.table``.
        settings: Of the route, as the pipeline file has them.
        kind: The target's kind and version.
    """

    def __init__(
        self, target: str, settings: Mapping[str, Any] | None = None, kind: str = "mysql 8.0.40"
    ) -> None:
        entry = {"database": ".*", "table": ".*", "target": target, **(settings or {})}
        self._rules = (routing_rule(entry, "example", Mode.OPTIMISTIC),)
        self._dialect = dialect_of(*kind.split())
        self._tables: dict[ShardId, Tracked] = {}
        self._last: dict[str, LastStatement | None] = {}
        self._offset = 0
        self._state = coordinator.initial(TargetTable(*target.split(".")))

    def create(self, shards: Sequence[str], sql: str) -> None:
        """Make the same table on some shards, each written as ``source/database.table``."""
        for shard in shards:
            source, _, table = shard.partition("/")
            head, _, rest = sql.partition("(")
            assert head.split()[:2] == ["CREATE", "TABLE"]
            self.run(source, f"CREATE TABLE {table} ({rest}")

    def run(self, source: str, sql: str, database: str = "") -> Answer:
        """The answer to one statement of a source."""
        self._offset += 1
        position = SourcePosition(0, "binlog.000001", 100 * self._offset, 0)
        event = SchemaChangeEvent(source, self._offset, database, sql, position, False, "", (), 0)
        result = track(self._tables, event, self._rules, ServerContext(), self._last.get(source))
        for shard, tracked in result.puts.items():
            if tracked is None:
                self._tables.pop(shard, None)
            else:
                self._tables[shard] = tracked
        self._last[source] = result.last
        [change] = result.changes
        step = coordinator.decide(self._state, change, self._dialect)
        assert step.decision is not None
        self._state = step.state
        texts = (statement.sql.replace("`", "") for statement in step.decision.statements)
        return Answer(str(step.decision.outcome), tuple(texts))
