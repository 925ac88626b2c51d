"""One event's statement on the tracked tables: what it changes, and what it makes uncertain. Pure.

The theory of operation is ``tracker``'s; here are its steps 1 to 4.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from shardmerge.connectors.debezium.envelope import SchemaChangeEvent
from shardmerge.schemas.ddl.apply.databases import (
    Defaults,
    defaults_after,
    in_database,
    server_defaults,
)
from shardmerge.schemas.ddl.apply.parents import (
    follow_columns,
    follow_parent,
    move_child,
)
from shardmerge.schemas.ddl.apply.statements import (
    apply_alter,
    apply_create,
    apply_rename,
)
from shardmerge.schemas.ddl.changes import (
    AlterDatabase,
    AlterTable,
    CreateDatabase,
    CreateTable,
    CreateTableLike,
    DropDatabase,
    DropTable,
    Irrelevant,
    MovePartition,
    RenameTable,
    Statement,
    TableMove,
    TableName,
    TruncateTable,
)
from shardmerge.schemas.ddl.grammar import (
    ServerContext,
    concerned_tables,
    parse,
)
from shardmerge.schemas.model.charsets import charset_name
from shardmerge.schemas.model.errors import (
    SourceError,
    UnparsableDDL,
    UnsupportedDDL,
)
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import TableSchema

from . import table_copies
from .tracked import (
    DatabaseDefaults,
    Parted,
    TableCopy,
    Tracked,
    Unknown,
    copy_id,
    database_id,
    is_table,
)

_SERVER = ""
"""Stands for the server among its databases: no database has an empty name."""
_DESCRIBE_ANEW = (
    "the shard's rows wait; they go on when a CREATE TABLE or a new snapshot describes the table"
)
_READ_AGAIN = (
    "give its CREATE TABLE by `shardmerge command set-schema`, then `shardmerge command reread`: "
    "the connector leaves the table's rows out until the watchdog says table_taken_in; rows that "
    "are deleted meanwhile stay in the target"
)


@dataclass(slots=True)
class Effect:
    """What the event did to one table, besides its tracked value."""

    lineage: tuple[Lineage, ...] | None = None
    actions: list[str] = field(default_factory=list)
    error: str = ""
    hint: str = ""


class Tracking:
    """The working state of one event: tracked values before it, and what changed.

    Args:
        before: The tracked tables.
        event: The event.
        context: How its server reads a statement.
        given: Names that earlier records of the same statement gave to tables.
        left: Tables whose names an earlier statement gave to nobody after all.
    """

    def __init__(
        self,
        before: Mapping[ShardId, Tracked],
        event: SchemaChangeEvent,
        context: ServerContext,
        given: Sequence[str] = (),
        left: Sequence[Parted] = (),
    ) -> None:
        self.before = before
        self.event = event
        self.puts: dict[ShardId, Tracked | None] = {}
        here = replace(context, default_database=event.database)
        self.context = in_database(here, self._defaults_of(_SERVER))
        self.effects: dict[ShardId, Effect] = {}
        self.reason = ""
        """Why the statement concerns no table; "" when it does."""
        self.given = list(given)
        self.parted: list[Parted] = []
        """Tables whose names a later record of the statement gives to others."""
        for table in left:
            self._end(table.shard, "RENAME TO another name")

    def run(self) -> None:
        """Read the statement, execute it on the tracked tables, compare with Debezium."""
        if self.event.snapshot and not self._describes():
            if (told := server_defaults(self.event.ddl, self.context)) is not None:
                self.puts[database_id(self.event.source, _SERVER)] = DatabaseDefaults(*told)
            self.reason = "a snapshot's statement describes a starting state and is not executed"
            return
        if self.event.unread:
            self.cannot_tell(SourceError(self.event.unread, hint=_READ_AGAIN))
            return
        try:
            statement = parse(self.event.ddl, self.context)
        except SourceError as error:
            self.cannot_tell(error)
            return
        self._execute(statement)
        self._cross_check()

    def _describes(self) -> bool:
        words = self.event.ddl.split(None, 2)
        return [w.upper() for w in words[:2]] in (["CREATE", "TABLE"], ["CREATE", "DATABASE"])

    # --- statements ---

    def _execute(self, statement: Statement) -> None:
        match statement:
            case CreateTable() | CreateTableLike():
                self._create(statement)
            case AlterTable():
                self._alter(statement)
            case DropTable():
                self._drop(statement)
            case RenameTable():
                for old, new in statement.pairs:
                    self._rename(self._origins(old, new), self._shard(new))
            case TruncateTable():
                # Its rows end with a row event of their own.
                self.reason = "TRUNCATE TABLE changes no schema"
            case CreateDatabase():
                self._create_database(statement)
            case AlterDatabase():
                self._set_defaults(statement)
            case DropDatabase():
                for shard in self._tables_of(statement.name):
                    self._end(shard, "DROP DATABASE")
                self.puts[database_id(self.event.source, statement.name)] = None
                self.reason = f"database {statement.name!r} has no tracked table"
            case Irrelevant():
                self.reason = f"{statement.what} changes no table's schema"

    def _create(self, statement: CreateTable | CreateTableLike) -> None:
        shard = self._shard(statement.name)
        if statement.temporary:
            self.reason = "a temporary table is not replicated"
            return
        if statement.if_not_exists and self._exists_already(shard):
            self.reason = f"table {shard} exists already"
            return
        like = None
        if isinstance(statement, CreateTableLike):
            origins = self._origins(statement.like, statement.name)
            found = self._tracked(origins[0])
            if len(origins) > 1:
                self._lose(shard, _ambiguous_origin(origins), _DESCRIBE_ANEW)
                return
            if not isinstance(found, TableSchema):
                self._lose(shard, *_not_known(origins[0], found))
                return
            like = found
        context = self._context_of(shard, self._charset_told(shard))
        try:
            schema = apply_create(statement, context, like)
        except SourceError as error:
            self._lose(shard, _message(error), error.hint or _DESCRIBE_ANEW)
            return
        self._put(shard, schema, "CREATE TABLE")
        # What a snapshot describes was made, and perhaps altered, before.
        seen = table_copies.is_copy(shard.table) and not self.event.snapshot
        self._keep_copy(shard, table_copies.created(schema) if seen else None)

    def _exists_already(self, shard: ShardId) -> bool:
        """Debezium gives a CREATE … IF NOT EXISTS that did nothing no table change."""
        known = self._tracked(shard)
        created = any(change.type == "CREATE" for change in self.event.tables)
        return known is not None and not created

    def _alter(self, statement: AlterTable) -> None:
        shard = self._shard(statement.name)
        schema = self._tracked(shard)
        if schema is None and statement.if_exists:
            self.reason = f"table {shard} does not exist"
            return
        if not isinstance(schema, TableSchema):
            self._lose(shard, *_not_known(shard, schema))
            return
        try:
            result = apply_alter(schema, statement, shard.table, self._context_of(shard))
        except SourceError as error:
            self._lose(shard, _message(error), error.hint or _DESCRIBE_ANEW)
            return
        copy = self._copy(shard)
        if copy is not None:
            copy = table_copies.altered(copy, shard.table, statement, result.schema)
            self._keep_copy(shard, copy)
        to = None if result.renamed_to is None else self._shard(result.renamed_to)
        after = move_child(result.schema, shard.database, (to or shard).database)
        effect = self._put(to or shard, after, *result.actions)
        if to is None or to == shard:
            effect.lineage = tuple(result.lineage)
        else:
            self._end(shard, f"RENAME TO {to.database}.{to.table}")
        self._change_children(shard, to or shard, result.lineage)
        for action in statement.actions:
            if isinstance(action, MovePartition):
                self._move_rows(action, self._origins(action.table, statement.name))

    def _move_rows(self, action: MovePartition, tables: Sequence[ShardId]) -> None:
        """A table changes places with a partition, or becomes one, or was one."""
        if len(tables) > 1:
            for shard in tables:
                self._lose(shard, _ambiguous_origin(tables), _DESCRIBE_ANEW)
            return
        table, known = tables[0], self._tracked(tables[0])
        if action.move is TableMove.MADE:
            self._lose(table, "the table was a partition of another table", _DESCRIBE_ANEW)
        elif action.move is TableMove.GONE and known is not None:
            self._end(table, action.text)
        elif isinstance(known, TableSchema):
            self._put(table, known, action.text)

    def _drop(self, statement: DropTable) -> None:
        if statement.temporary:
            self.reason = "a temporary table is not replicated"
            return
        for name in statement.names:
            shard = self._shard(name)
            if self._tracked(shard) is None:
                self.reason = f"table {shard} is not tracked"
            else:
                self._end(shard, "DROP TABLE")

    def _rename(self, origins: Sequence[ShardId], new: ShardId) -> None:
        if len(origins) > 1:
            for shard in (*origins, new):
                self._lose(shard, _ambiguous_origin(origins), _DESCRIBE_ANEW)
            return
        old = origins[0]
        if old == new:
            return
        tracked = self._tracked(old)
        if isinstance(tracked, TableSchema):
            moved = move_child(
                apply_rename(tracked, old.table, new.table), old.database, new.database
            )
            effect = self._put(new, moved, f"RENAME FROM {old.database}.{old.table}")
            effect.lineage = self._lineage_of_copy(old, new, moved)
        else:
            self._lose(new, *_not_known(old, tracked))
        if isinstance(tracked, TableSchema) and self._is_given_again(old, new):
            self.puts[old] = None
            self._keep_copy(old, None)
            self.parted.append(Parted(old, tracked))
            self.reason = f"the statement gives the name of {old} to another table"
        else:
            self._end(old, f"RENAME TO {new.database}.{new.table}")
        self._change_children(old, new)
        self.given.append(new.table)

    def _change_children(self, old: ShardId, new: ShardId, lineage: Sequence[Lineage] = ()) -> None:
        """The foreign keys of other tables follow their parent's new name and its columns'."""
        renamed = {line.before.lower(): line.name for line in lineage if line.before}
        renamed = {before: name for before, name in renamed.items() if before != name.lower()}
        if old == new and not renamed:
            return
        parent = (old.database, old.table)
        for shard in sorted({*self.before, *self.puts}):
            schema = self._tracked(shard) if shard.source == old.source else None
            if not isinstance(schema, TableSchema) or not schema.foreign_keys:
                continue
            after = follow_columns(schema, shard.database, parent, renamed)
            after = follow_parent(after, shard.database, parent, (new.database, new.table))
            if after == schema:
                continue
            effect = self.effects.get(shard)
            if effect is None:
                self._put(shard, after, f"FOREIGN KEY follows {new.database}.{new.table}")
            else:
                self.puts[shard] = after

    def _is_given_again(self, old: ShardId, new: ShardId) -> bool:
        """Whether a later record of the statement gives the old name to another table.

        The event names the tables that there are after the statement, without their databases.
        """
        if self.event.table == new.table:
            return False
        after = self.event.table.split(",")
        return after.count(old.table) > self.given.count(old.table) + (old.table == new.table)

    # --- databases ---

    def _create_database(self, statement: CreateDatabase) -> None:
        name, tables = statement.name, self._tables_of(statement.name)
        if statement.if_not_exists and (tables or self._defaults_of(name) is not None):
            self.reason = f"database {name!r} exists already"
            return
        for shard in tables if statement.replaces else ():
            self._end(shard, "CREATE OR REPLACE DATABASE")
        self._set_defaults(statement)

    def _set_defaults(self, statement: CreateDatabase | AlterDatabase) -> None:
        self.reason = "the defaults of a database change no table"
        name = statement.name or self.event.database
        if not name:
            self.reason = "the statement tells no database, and the event tells none either"
            return
        defaults = defaults_after(statement, self._defaults_of(name), self.context)
        if defaults is not None:
            self.puts[database_id(self.event.source, name)] = DatabaseDefaults(*defaults)

    def _defaults_of(self, database: str) -> Defaults | None:
        found = self._tracked(database_id(self.event.source, database))
        return (found.charset, found.collation) if isinstance(found, DatabaseDefaults) else None

    def _context_of(self, shard: ShardId, told: str = "") -> ServerContext:
        """The context of a statement on the table, with what it inherits from its database.

        A snapshot describes the databases that have tables then. Of any other that is not made
        later, ``told`` is the best word for its charset; without one it has the server's.
        """
        defaults = self._defaults_of(shard.database)
        if defaults is None and told not in ("", self.context.charset):
            defaults = (told, "")
        return in_database(self.context, defaults)

    def _charset_told(self, shard: ShardId) -> str:
        """The charset that Debezium gives a table which the event makes; "" when it tells none."""
        for change in self.event.tables:
            if (
                change.type == "CREATE"
                and ShardId(self.event.source, change.database, change.table) == shard
            ):
                charset = charset_name(change.charset)
                return "" if charset == "default" else charset
        return ""

    # --- what cannot be told ---

    def cannot_tell(self, error: SourceError) -> None:
        """The statement is not understood: whatever it concerns is unknown from here on."""
        self.reason = (
            f"the statement is not understood ({error.message}), and no shard has to do with it"
        )
        if self.event.snapshot and not self.event.tables:
            return
        names = concerned_tables(self.event.ddl, self.context)
        shards = dict.fromkeys((*map(self._shard, names), *self.event.named_shards()))
        hint = error.hint or _DESCRIBE_ANEW
        if not shards:
            shards = dict.fromkeys(self._tables_of(self.event.database))
            hint = f"it is not clear which tables it concerns, so all of its database stand; {hint}"
        for shard in shards:
            self._lose(shard, _message(error), hint)

    def _cross_check(self) -> None:
        """Compare the columns with those that Debezium's own parser sees.

        Where it makes more or fewer of a table that the statement changes, the text counts: the
        connector stops at the first row that has another number of values than it knows columns,
        so that no row is read with the wrong ones, and is brought on with the right ones
        (``connectors.repair``). Were it ours that are wrong, the rows would tell.
        """
        for change in self.event.tables:
            if change.type == "DROP" or not change.columns:
                continue
            shard = ShardId(self.event.source, change.database, change.table)
            tracked = self._tracked(shard)
            if not isinstance(tracked, TableSchema):
                continue
            ours = [column.name for column in tracked.columns]
            if shard in self.effects and len(ours) != len(change.columns):
                continue
            if _folded(ours) != _folded(change.column_names):
                self._lose(
                    shard,
                    f"the columns after the statement are not certain: {', '.join(ours)} as "
                    f"tracked, {', '.join(change.column_names)} as Debezium reads it",
                    _DESCRIBE_ANEW,
                )

    # --- tables ---

    def _shard(self, name: TableName) -> ShardId:
        return ShardId(self.event.source, name.database or self.event.database, name.table)

    def _origins(self, name: TableName, beside: TableName) -> list[ShardId]:
        """Which tables a name can mean that stands beside the name of the changed table.

        The event tells the changed table's database, not the session's: if only the changed table
        is written with its database, that of the other name is told nowhere. Never empty.
        """
        if name.database or not beside.database:
            return [self._shard(name)]
        found = [
            shard
            for shard in {*self.before, *self.puts}
            if shard.source == self.event.source
            and shard.table == name.table
            and self._tracked(shard) is not None
        ]
        return sorted(found) or [self._shard(name)]

    def _tracked(self, shard: ShardId) -> Tracked | None:
        return self.puts[shard] if shard in self.puts else self.before.get(shard)

    def _tables_of(self, database: str) -> list[ShardId]:
        return sorted(
            shard
            for shard in {*self.before, *self.puts}
            if shard.source == self.event.source
            and shard.database == database
            and is_table(shard)
            and self._tracked(shard) is not None
        )

    def _put(self, shard: ShardId, schema: TableSchema, *actions: str) -> Effect:
        self.puts[shard] = schema
        effect = self.effects.setdefault(shard, Effect())
        effect.actions.extend(actions)
        effect.lineage, effect.error, effect.hint = None, "", ""
        return effect

    def _end(self, shard: ShardId, action: str) -> None:
        self.puts[shard] = None
        self._keep_copy(shard, None)
        effect = self.effects.setdefault(shard, Effect())
        effect.actions.append(action)
        effect.lineage, effect.error, effect.hint = None, "", ""

    def _lose(self, shard: ShardId, error: str, hint: str) -> None:
        known = self._tracked(shard)
        # The first reason stays: it is what the operator has to look at.
        self.puts[shard] = known if isinstance(known, Unknown) else Unknown(self._since(error))
        self._keep_copy(shard, None)
        effect = self.effects.setdefault(shard, Effect())
        effect.lineage, effect.error, effect.hint = None, error, hint

    def _copy(self, shard: ShardId) -> TableCopy | None:
        """What is known of the table as a tool's copy of another one."""
        found = self._tracked(copy_id(shard))
        return found if isinstance(found, TableCopy) else None

    def _keep_copy(self, shard: ShardId, copy: TableCopy | None) -> None:
        if copy != self._copy(shard):
            self.puts[copy_id(shard)] = copy

    def _lineage_of_copy(
        self, copy: ShardId, table: ShardId, schema: TableSchema
    ) -> tuple[Lineage, ...] | None:
        """The lineage of a table that a tool's copy replaces; None: columns are the same by name.

        Args:
            copy: The copy, before it gets the table's name.
            table: The table, as it was before the statement.
            schema: The copy's.
        """
        known, before = self._copy(copy), self.before.get(table)
        if known is None or not isinstance(before, TableSchema):
            return None
        return table_copies.lineage(known, before, schema)

    def _since(self, error: str) -> str:
        """An error's headline with the place of the statement, for what comes later."""
        headline = error.partition("\n")[0]
        return f"at {self.event.position} {headline}"


def _not_known(shard: ShardId, tracked: Tracked | None) -> tuple[str, str]:
    if isinstance(tracked, Unknown):
        return f"the schema of {shard} is unknown: {tracked.reason}", _DESCRIBE_ANEW
    return f"the schema of {shard} is not known: its CREATE TABLE was not seen", (
        "take a snapshot of the table; capture the whole database from the start"
    )


def defect_of_ours(error: Exception) -> SourceError:
    """A defect of our own, as the reason why a statement's effect cannot be told."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{PurePath(place.filename).name}:{place.lineno}"
    return SourceError(
        f"defect of shardmerge: {type(error).__name__}: {error} ({where})",
        hint=f"report it with the statement; {_DESCRIBE_ANEW}",
    )


def _ambiguous_origin(origins: Sequence[ShardId]) -> str:
    names = " or ".join(map(str, origins))
    return f"the statement does not tell which table it means: {names}"


def _message(error: SourceError) -> str:
    if isinstance(error, UnparsableDDL):
        return f"cannot parse: {error.message}, at character {error.offset + 1}\n{error.caret()}"
    if isinstance(error, UnsupportedDDL):
        return f"cannot track: {error.message}"
    return error.message


def _folded(names: Sequence[str]) -> list[str]:
    """Column names for comparison; Debezium sometimes keeps a name's backtick doubled."""
    return [name.lower().replace("``", "`") for name in names]
