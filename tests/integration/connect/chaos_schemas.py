"""What the tracker makes of a source's topic, against the server and against the rows."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shardmerge.agents.tracking.tracked import LastStatement, Tracked
from shardmerge.agents.tracking.tracker import track
from shardmerge.connectors.debezium.envelope import schema_change_event
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.names import ShardId, quote_identifier
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Kafka
from tests.integration.mysql.information import Information, Query
from tests.integration.mysql.twin import compare

from .chaos_rows import Seen, Tally

_EVERY_TABLE = (RoutingRule(".*", ".*", ".*", "merged", "t"),)


@dataclass(slots=True)
class Folded:
    """A source's topic as the tracker reads it.

    Attributes:
        schemas: What is tracked in the end.
        changes: By table, how many changes it had that no snapshot describes.
        offsets: Places and offsets of what was executed, in order.
        columns: By table, from which place on it has which columns; None: they are not known.
        told: Errors, for people.
    """

    schemas: dict[ShardId, Tracked] = field(default_factory=dict)
    changes: Counter[str] = field(default_factory=Counter)
    offsets: list[tuple[SourcePosition, int]] = field(default_factory=list)
    columns: dict[str, list[tuple[SourcePosition, tuple[str, ...] | None]]] = field(
        default_factory=dict
    )
    told: list[str] = field(default_factory=list)


def fold(bootstrap_servers: str, source: str, database: str, context: ServerContext) -> Folded:
    """Fold every committed record of the source's topic."""
    folded = Folded()
    last: LastStatement | None = None
    with TopicReader(Kafka(bootstrap_servers)) as reader:
        records = [r for extent in reader.extents((source,)) for r in reader.records(extent)]
    for record in records:
        event = schema_change_event(source, record.offset, record.key, record.value)
        result = track(folded.schemas, event, _EVERY_TABLE, context, last)
        last = result.last
        for shard, value in result.puts.items():
            if value is None:
                folded.schemas.pop(shard, None)
            else:
                folded.schemas[shard] = value
        if not event.snapshot and result.changes:
            folded.offsets.append((event.position, event.offset))
        for change in result.changes:
            if change.shard.database != database:
                continue
            table = change.shard.table
            folded.changes[table] += not event.snapshot
            names = None if change.after is None else tuple(c.name for c in change.after.columns)
            folded.columns.setdefault(table, []).append((event.position, names))
            if change.error:
                folded.told.append(f"{event.offset} {event.ddl}: {change.error}")
    return folded


def judge_schemas(
    folded: Folded,
    executed: Mapping[str, int],
    query: Query,
    context: ServerContext,
    tally: Tally,
    *,
    source: str,
    database: str,
) -> list[str]:
    """Count schema changes that are lost or doubled, and tables that are not as tracked.

    Args:
        folded: What the tracker made.
        executed: By table, how many statements changed it since the snapshot.
        query: Asks the server.
        context: How it reads a statement.
        tally: Is added to.
        source, database: Whose tables.
    """
    told = []
    for table, count in executed.items():
        more = folded.changes[table] - count
        tally.ddl_doubled += max(more, 0)
        tally.ddl_lost += max(-more, 0)
        if more:
            told.append(f"{table}: {count} statements, {folded.changes[table]} schema changes")
    inside = replace(context, default_database=database)
    information = Information(query, inside)
    names = {
        str(row[0]) for row in query(f"SHOW FULL TABLES FROM {database}") if row[1] == "BASE TABLE"
    }
    tracked = {
        shard.table: value
        for shard, value in folded.schemas.items()
        if (shard.source, shard.database) == (source, database)
        and shard.table in {*names, *executed}
    }
    for table in sorted(names | tracked.keys()):
        schema = tracked.get(table)
        if table not in names or not isinstance(schema, TableSchema):
            place = "the server" if table in names else "the tracker"
            differences = [f"only {place} has it: {schema}"]
        else:
            shown = query(f"SHOW CREATE TABLE {database}.{quote_identifier(table)}")[0][1]
            statement = parse(str(shown), inside)
            assert isinstance(statement, CreateTable)
            differences = compare((database, table), schema, apply_create(statement, inside))
            differences += information.differences(database, table, schema)
        tally.ddl_wrong += bool(differences)
        told += [f"{table} differs: {line}" for line in differences]
    return told


def judge_places(folded: Folded, seen: Iterable[Seen], tally: Tally) -> list[str]:
    """Count rows that another schema stands before than they have, or that came before it."""
    told = []
    for record in seen:
        if record.operation == "read":
            continue
        place = SourcePosition(0, *record.place)
        before = _before(folded.columns.get(record.table, ()), place)
        names = tuple(name for name, _ in record.image)
        if before is not None and before != names:
            told.append(f"{record.table} at {record.place} has {names}, tracked are {before}")
            tally.wrong += 1
        passed = [offset for at, offset in folded.offsets if at < place]
        if passed and max(passed) >= record.high_watermark:
            told.append(f"{record.table} at {record.place} was readable before its DDL")
            tally.early += 1
    return told


def _before(
    columns: Sequence[tuple[SourcePosition, tuple[str, ...] | None]], place: SourcePosition
) -> tuple[str, ...] | None:
    at = bisect_left([position for position, _ in columns], place)
    return columns[at - 1][1] if at else None


def server_context(query: Query) -> ServerContext:
    """What the tracker knows of a server, as the server tells it."""
    text = str(query("SELECT VERSION()")[0][0])
    version = tuple(int(part) for part in text.partition("-")[0].split("."))
    flavour = "mariadb" if "MariaDB" in text else "mysql"
    return ServerContext(
        flavour, version, charset=str(query("SELECT @@character_set_server")[0][0])
    )


def last_records(bootstrap_servers: str, topic: str, count: int) -> list[str]:
    """The last committed records of a topic of JSON, shortened, with their offsets."""
    with TopicReader(Kafka(bootstrap_servers)) as reader:
        records = [r for extent in reader.extents((topic,)) for r in reader.records(extent)]
    return [f"@{r.offset} {_shortened(r.value)}" for r in records[-count:]]


def _shortened(value: bytes | None) -> str:
    document = json.loads(value or b"null")
    if isinstance(document, dict):
        changes = document.get("tableChanges") or []
        document["tableChanges"] = [
            {
                "type": change["type"],
                "id": change["id"],
                "columns": [c["name"] for c in (change.get("table") or {}).get("columns", [])],
                "primaryKey": (change.get("table") or {}).get("primaryKeyColumnNames"),
            }
            for change in changes
        ]
    return json.dumps(document, ensure_ascii=False)
