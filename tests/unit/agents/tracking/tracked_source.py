"""A source of statements, whose shards' schemas are tracked."""

from __future__ import annotations

from shardmerge.agents.tracking.tracked import LastStatement, Tracked
from shardmerge.agents.tracking.tracker import TrackResult, track
from shardmerge.connectors.debezium.envelope import ColumnImage, SchemaChangeEvent, TableChange
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.routing import RoutingRule

RULES = (RoutingRule("s1", "shop", r"tbl\d\d", "merged", "tbl"),)
CREATE = "CREATE TABLE tbl00 (ID INT PRIMARY KEY, NAME VARCHAR(20))"


class Source:
    """A source that is tracked: each statement is one event."""

    def __init__(self, rules=RULES, context: ServerContext | None = None) -> None:
        self.rules = rules
        self.context = context or ServerContext()
        self.schemas: dict[ShardId, Tracked] = {}
        self.offset = -1
        self.last: LastStatement | None = None

    def run(
        self,
        ddl: str,
        *tables: TableChange,
        snapshot: bool = False,
        table: str = "",
        database: str = "shop",
        pos: int | None = None,
        epoch: int = 0,
        gtid: str = "",
        unread: str = "",
    ) -> TrackResult:
        self.offset += 1
        pos = 100 + self.offset if pos is None else pos
        position = SourcePosition(epoch, "binlog.000001", pos, 0)
        event = SchemaChangeEvent(
            "s1", self.offset, database, ddl, position, snapshot, table, tables, 5, gtid, unread
        )
        result = track(self.schemas, event, self.rules, self.context, self.last)
        self.last = result.last
        for shard, value in result.puts.items():
            if value is None:
                self.schemas.pop(shard, None)
            else:
                self.schemas[shard] = value
        return result


def shard(table: str, database: str = "shop") -> ShardId:
    return ShardId("s1", database, table)


def image(type_: str, table: str, *columns: str, charset: str = "") -> TableChange:
    described = tuple(ColumnImage(c, "INT") for c in columns)
    return TableChange(type_, "shop", table, described, charset)


def names(schema: TableSchema | None) -> list[str]:
    assert schema is not None
    return [column.name for column in schema.columns]
