"""The tracked tables while one event's statement is executed on them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shardmerge.connectors.debezium.envelope import SchemaChangeEvent
from shardmerge.schemas.ddl.apply.databases import Defaults
from shardmerge.schemas.ddl.apply.parents import follow_columns, follow_parent
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.model.charsets import charset_name
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import TableSchema

from . import table_copies
from .tracked import DatabaseDefaults, TableCopy, Tracked, Unknown, copy_id, database_id, is_table


@dataclass(slots=True)
class TableEffect:
    """What the event did to one table, besides its tracked value."""

    lineage: tuple[Lineage, ...] | None = None
    actions: list[str] = field(default_factory=list)
    error: str = ""
    hint: str = ""
    code: str = ""


class EventTables:
    """The tracked tables of one event: as they were before it, and what changed.

    Args:
        before: The tracked tables.
        event: The event.

    Attributes:
        puts: Tables (and databases) whose tracked value changed; None: forget it.
        effects: What the event did to each table that it concerns.
    """

    def __init__(self, before: Mapping[ShardId, Tracked], event: SchemaChangeEvent) -> None:
        self.before = before
        self.event = event
        self.puts: dict[ShardId, Tracked | None] = {}
        self.effects: dict[ShardId, TableEffect] = {}

    def shard(self, name: TableName) -> ShardId:
        """The table of a name; a name without a database is in the event's database."""
        return ShardId(self.event.source, name.database or self.event.database, name.table)

    def origins(self, name: TableName, beside: TableName) -> list[ShardId]:
        """The tables that another name in a statement can mean; ``beside`` is the changed table's.

        The event tells the changed table's database, not the session's. So if only the changed
        table is written with its database, nothing tells the other name's database. Never empty.
        """
        if name.database or not beside.database:
            return [self.shard(name)]
        found = [
            shard
            for shard in {*self.before, *self.puts}
            if shard.source == self.event.source
            and shard.table == name.table
            and self.tracked(shard) is not None
        ]
        return sorted(found) or [self.shard(name)]

    def tracked(self, shard: ShardId) -> Tracked | None:
        """What is known of a table now; None when nothing is."""
        return self.puts[shard] if shard in self.puts else self.before.get(shard)

    def tables_of(self, database: str) -> list[ShardId]:
        """The tables of a database that exist or are unknown, sorted."""
        return sorted(
            shard
            for shard in {*self.before, *self.puts}
            if shard.source == self.event.source
            and shard.database == database
            and is_table(shard)
            and self.tracked(shard) is not None
        )

    def put(self, shard: ShardId, schema: TableSchema, *actions: str) -> TableEffect:
        """A table has this schema from here on."""
        self.puts[shard] = schema
        effect = self.effects.setdefault(shard, TableEffect())
        effect.actions.extend(actions)
        effect.lineage, effect.error, effect.hint, effect.code = None, "", "", ""
        return effect

    def end(self, shard: ShardId, action: str) -> None:
        """A table is gone from here on."""
        self.puts[shard] = None
        self.keep_copy(shard, None)
        effect = self.effects.setdefault(shard, TableEffect())
        effect.actions.append(action)
        effect.lineage, effect.error, effect.hint, effect.code = None, "", "", ""

    def lose(self, shard: ShardId, error: str, hint: str, code: str) -> None:
        """The schema of a table is unknown from here on."""
        known = self.tracked(shard)
        # The first reason stays: it is what the operator has to look at.
        self.puts[shard] = known if isinstance(known, Unknown) else Unknown(self._since(error))
        self.keep_copy(shard, None)
        effect = self.effects.setdefault(shard, TableEffect())
        effect.lineage, effect.error, effect.hint, effect.code = None, error, hint, code

    def copy(self, shard: ShardId) -> TableCopy | None:
        """What is known of the table as a tool's copy of another one."""
        found = self.tracked(copy_id(shard))
        return found if isinstance(found, TableCopy) else None

    def keep_copy(self, shard: ShardId, copy: TableCopy | None) -> None:
        """Remember, or forget with None, what is known of a table as a tool's copy."""
        if copy != self.copy(shard):
            self.puts[copy_id(shard)] = copy

    def lineage_of_copy(
        self, copy: ShardId, table: ShardId, schema: TableSchema
    ) -> tuple[Lineage, ...] | None:
        """The lineage of a table that a tool's copy replaces; None: columns are the same by name.

        Args:
            copy: The copy, before it gets the table's name.
            table: The table, as it was before the statement.
            schema: The copy's.
        """
        known, before = self.copy(copy), self.before.get(table)
        if known is None or not isinstance(before, TableSchema):
            return None
        return table_copies.lineage(known, before, schema)

    def _since(self, error: str) -> str:
        """An error's headline with the statement's place, for the errors of later statements."""
        headline = error.partition("\n")[0]
        return f"at {self.event.position} {headline}"

    def defaults_of(self, database: str) -> Defaults | None:
        """Charset and collation of a database; None when they are not known."""
        found = self.tracked(database_id(self.event.source, database))
        return (found.charset, found.collation) if isinstance(found, DatabaseDefaults) else None

    def change_children(self, old: ShardId, new: ShardId, lineage: Sequence[Lineage] = ()) -> None:
        """Let other tables' foreign keys follow the new names of their parent and its columns."""
        renamed = {line.before.lower(): line.name for line in lineage if line.before}
        renamed = {before: name for before, name in renamed.items() if before != name.lower()}
        if old == new and not renamed:
            return
        parent = (old.database, old.table)
        for shard in sorted({*self.before, *self.puts}):
            schema = self.tracked(shard) if shard.source == old.source else None
            if not isinstance(schema, TableSchema) or not schema.foreign_keys:
                continue
            after = follow_columns(schema, shard.database, parent, renamed)
            after = follow_parent(after, shard.database, parent, (new.database, new.table))
            if after == schema:
                continue
            effect = self.effects.get(shard)
            if effect is None:
                self.put(shard, after, f"FOREIGN KEY follows {new.database}.{new.table}")
            else:
                self.puts[shard] = after

    def charset_of_new(self, shard: ShardId) -> str:
        """Debezium's charset for a table that the event creates; "" when it tells none."""
        for change in self.event.tables:
            if (
                change.type == "CREATE"
                and ShardId(self.event.source, change.database, change.table) == shard
            ):
                charset = charset_name(change.charset)
                return "" if charset == "default" else charset
        return ""
