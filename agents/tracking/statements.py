"""One event's statement on the tracked tables: what it changes, and what it makes uncertain. Pure.

The theory of operation is ``tracker``'s; here are its steps 1 to 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from shardmerge.connectors.debezium.envelope import SchemaChangeEvent
from shardmerge.schemas.ddl.apply.databases import (
    Defaults,
    defaults_after,
    in_database,
    server_defaults,
)
from shardmerge.schemas.ddl.apply.parents import move_child
from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create, apply_rename
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
    RenameTableTo,
    Statement,
    TableMove,
    TruncateTable,
)
from shardmerge.schemas.ddl.grammar import ServerContext, concerned_tables, parse
from shardmerge.schemas.model.errors import SourceError
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.tables import TableSchema

from . import table_copies
from .event_tables import EventTables
from .misread_texts import misread_message, misread_texts
from .tracked import DatabaseDefaults, Parted, Tracked, database_id
from .unknown_schemas import DESCRIBE_ANEW, ambiguous_origin, message, not_known

_SERVER = ""
"""Stands for the server among its databases: no database has an empty name."""
_MOST_CONTEXTS = 512
"""Contexts that are remembered: statements of one database have the same."""
_READ_AGAIN = (
    "give its CREATE TABLE by `shardmerge command set-schema`, then `shardmerge command reread`: "
    "the connector leaves the table's rows out until the watchdog says table_taken_in; rows that "
    "are deleted meanwhile stay in the target"
)


class Tracking:
    """The working state of one event: tracked values before it, and what changed.

    Args:
        before: The tracked tables.
        event: The event.
        context: How its server reads a statement.
        given: Names that earlier records of the same statement gave to tables.
        left: Tables that an earlier statement renamed, and whose old names it gave to no table.
    """

    def __init__(
        self,
        before: Mapping[ShardId, Tracked],
        event: SchemaChangeEvent,
        context: ServerContext,
        given: Sequence[str] = (),
        left: Sequence[Parted] = (),
    ) -> None:
        self.event = event
        self.tables = EventTables(before, event)
        self.context = _context_in(context, event.database, self.tables.defaults_of(_SERVER))
        self.reason = ""
        """Why the statement concerns no table; "" when it does."""
        self.given = list(given)
        self.parted: list[Parted] = []
        """Tables whose names a later record of the statement gives to others."""
        for table in left:
            self.tables.end(table.shard, "RENAME TO another name")

    def run(self) -> None:
        """Read the statement, execute it on the tracked tables, compare with Debezium."""
        if self.event.snapshot and not self._describes():
            if (told := server_defaults(self.event.ddl, self.context)) is not None:
                self.tables.puts[database_id(self.event.source, _SERVER)] = DatabaseDefaults(*told)
            self.reason = "a snapshot's statement describes a starting state and is not executed"
            return
        if self.event.unread:
            self.cannot_tell(SourceError(self.event.unread, hint=_READ_AGAIN, code="SM-1106"))
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
                    self._rename(self.tables.origins(old, new), self.tables.shard(new))
            case TruncateTable():
                # The truncation has a row event of its own.
                self.reason = "TRUNCATE TABLE changes no schema"
            case CreateDatabase():
                self._create_database(statement)
            case AlterDatabase():
                self._set_defaults(statement)
            case DropDatabase():
                for shard in self.tables.tables_of(statement.name):
                    self.tables.end(shard, "DROP DATABASE")
                self.tables.puts[database_id(self.event.source, statement.name)] = None
                self.reason = f"database {statement.name!r} has no tracked table"
            case Irrelevant():
                self.reason = f"{statement.what} changes no table's schema"

    def _create(self, statement: CreateTable | CreateTableLike) -> None:
        shard = self.tables.shard(statement.name)
        if statement.temporary:
            self.reason = "a temporary table is not replicated"
            return
        if statement.if_not_exists and self._exists_already(shard):
            self.reason = f"table {shard} exists already"
            return
        like = None
        if isinstance(statement, CreateTableLike):
            origins = self.tables.origins(statement.like, statement.name)
            found = self.tables.tracked(origins[0])
            if len(origins) > 1:
                self.tables.lose(shard, ambiguous_origin(origins), DESCRIBE_ANEW, "SM-1108")
                return
            if not isinstance(found, TableSchema):
                self.tables.lose(shard, *not_known(origins[0], found))
                return
            like = found
        context = self._context_of(shard, self.tables.charset_of_new(shard))
        try:
            schema = apply_create(statement, context, like)
        except SourceError as error:
            self.tables.lose(shard, message(error), error.hint or DESCRIBE_ANEW, error.code)
            return
        self.tables.put(shard, schema, "CREATE TABLE")
        # A table that a snapshot describes was created, and perhaps altered, unseen before.
        seen = table_copies.is_copy(shard.table) and not self.event.snapshot
        self.tables.keep_copy(shard, table_copies.created(schema) if seen else None)

    def _exists_already(self, shard: ShardId) -> bool:
        """Debezium gives a CREATE … IF NOT EXISTS that did nothing no table change."""
        known = self.tables.tracked(shard)
        created = any(change.type == "CREATE" for change in self.event.tables)
        return known is not None and not created

    def _alter(self, statement: AlterTable) -> None:
        shard = self.tables.shard(statement.name)
        for action in statement.actions:
            if isinstance(action, RenameTableTo):
                # The event's database is that of the new name.
                origins = self.tables.origins(statement.name, action.to)
                if len(origins) > 1:
                    self._lose_origins(origins, self.tables.shard(action.to))
                    return
                shard = origins[0]
        schema = self.tables.tracked(shard)
        if schema is None and statement.if_exists:
            self.reason = f"table {shard} does not exist"
            return
        if not isinstance(schema, TableSchema):
            self.tables.lose(shard, *not_known(shard, schema))
            return
        try:
            result = apply_alter(schema, statement, shard.table, self._context_of(shard))
        except SourceError as error:
            self.tables.lose(shard, message(error), error.hint or DESCRIBE_ANEW, error.code)
            return
        copy = self.tables.copy(shard)
        if copy is not None:
            copy = table_copies.altered(copy, shard.table, statement, result.schema)
            self.tables.keep_copy(shard, copy)
        to = None if result.renamed_to is None else self.tables.shard(result.renamed_to)
        after = move_child(result.schema, shard.database, (to or shard).database)
        effect = self.tables.put(to or shard, after, *result.actions)
        if to is None or to == shard:
            effect.lineage = tuple(result.lineage)
        else:
            self.tables.end(shard, f"RENAME TO {to.database}.{to.table}")
        self.tables.change_children(shard, to or shard, result.lineage)
        for action in statement.actions:
            if isinstance(action, MovePartition):
                self._move_rows(action, self.tables.origins(action.table, statement.name))

    def _move_rows(self, action: MovePartition, tables: Sequence[ShardId]) -> None:
        """A table changes places with a partition, or becomes one, or was one."""
        if len(tables) > 1:
            for shard in tables:
                self.tables.lose(shard, ambiguous_origin(tables), DESCRIBE_ANEW, "SM-1108")
            return
        table, known = tables[0], self.tables.tracked(tables[0])
        if action.move is TableMove.MADE:
            self.tables.lose(
                table, "the table was a partition of another table", DESCRIBE_ANEW, "SM-1103"
            )
        elif action.move is TableMove.GONE and known is not None:
            self.tables.end(table, action.text)
        elif isinstance(known, TableSchema):
            self.tables.put(table, known, action.text)

    def _drop(self, statement: DropTable) -> None:
        if statement.temporary:
            self.reason = "a temporary table is not replicated"
            return
        for name in statement.names:
            shard = self.tables.shard(name)
            if self.tables.tracked(shard) is None:
                self.reason = f"table {shard} is not tracked"
            else:
                self.tables.end(shard, "DROP TABLE")

    def _rename(self, origins: Sequence[ShardId], new: ShardId) -> None:
        if len(origins) > 1:
            self._lose_origins(origins, new)
            return
        old = origins[0]
        if old == new:
            return
        tracked = self.tables.tracked(old)
        if isinstance(tracked, TableSchema):
            moved = move_child(
                apply_rename(tracked, old.table, new.table), old.database, new.database
            )
            effect = self.tables.put(new, moved, f"RENAME FROM {old.database}.{old.table}")
            effect.lineage = self.tables.lineage_of_copy(old, new, moved)
        else:
            self.tables.lose(new, *not_known(old, tracked))
        if isinstance(tracked, TableSchema) and self._is_given_again(old, new):
            self.tables.puts[old] = None
            self.tables.keep_copy(old, None)
            self.parted.append(Parted(old, tracked))
            self.reason = f"the statement gives the name of {old} to another table"
        else:
            self.tables.end(old, f"RENAME TO {new.database}.{new.table}")
        self.tables.change_children(old, new)
        self.given.append(new.table)

    def _lose_origins(self, origins: Sequence[ShardId], new: ShardId) -> None:
        """One of these tables has a new name now, but not even the event tells which."""
        for shard in (*origins, new):
            self.tables.lose(shard, ambiguous_origin(origins), DESCRIBE_ANEW, "SM-1108")

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
        name, tables = statement.name, self.tables.tables_of(statement.name)
        if statement.if_not_exists and (tables or self.tables.defaults_of(name) is not None):
            self.reason = f"database {name!r} exists already"
            return
        for shard in tables if statement.replaces else ():
            self.tables.end(shard, "CREATE OR REPLACE DATABASE")
        self._set_defaults(statement)

    def _set_defaults(self, statement: CreateDatabase | AlterDatabase) -> None:
        self.reason = "the defaults of a database change no table"
        name = statement.name or self.event.database
        if not name:
            self.reason = "the statement tells no database, and the event tells none either"
            return
        defaults = defaults_after(statement, self.tables.defaults_of(name), self.context)
        if defaults is not None:
            self.tables.puts[database_id(self.event.source, name)] = DatabaseDefaults(*defaults)

    def _context_of(self, shard: ShardId, told: str = "") -> ServerContext:
        """The context of a statement on the table, with what it inherits from its database.

        A snapshot describes only the databases that have tables at that time. For another database
        whose CREATE was not seen, ``told`` (a charset) is the best guess, else the server's.
        """
        defaults = self.tables.defaults_of(shard.database)
        if defaults is None and told not in ("", self.context.charset):
            defaults = (told, "")
        return in_database(self.context, defaults)

    # --- what cannot be told ---

    def cannot_tell(self, error: SourceError) -> None:
        """The statement is not understood: whatever it concerns is unknown from here on."""
        self.reason = f"the statement is not understood ({error.message}), and it concerns no shard"
        if self.event.snapshot and not self.event.tables:
            return
        names = concerned_tables(self.event.ddl, self.context)
        shards = dict.fromkeys((*map(self.tables.shard, names), *self.event.named_shards()))
        hint = error.hint or DESCRIBE_ANEW
        if not shards:
            shards = dict.fromkeys(self.tables.tables_of(self.event.database))
            hint = f"it is not clear which tables it concerns, so its whole database waits; {hint}"
        for shard in shards:
            self.tables.lose(shard, message(error), hint, error.code)

    def _cross_check(self) -> None:
        """Compare the columns, and their charsets, with those that Debezium's own parser sees.

        If Debezium sees another number of columns in a changed table, our reading of the text
        counts. The connector then stops at the first row whose number of values is not its number
        of columns, so it reads no row with wrong columns, and ``connectors.repair`` gives it the
        right ones. If our columns were the wrong ones, the rows would show it.
        """
        for change in self.event.tables:
            if change.type == "DROP" or not change.columns:
                continue
            shard = ShardId(self.event.source, change.database, change.table)
            tracked = self.tables.tracked(shard)
            if not isinstance(tracked, TableSchema):
                continue
            ours = [column.name for column in tracked.columns]
            if shard in self.tables.effects and len(ours) != len(change.columns):
                continue
            if _compared_names(ours) != _compared_names(change.column_names):
                self.tables.lose(
                    shard,
                    f"the columns after the statement are not certain: {', '.join(ours)} as "
                    f"tracked, {', '.join(change.column_names)} as Debezium reads it",
                    DESCRIBE_ANEW,
                    "SM-1113",
                )
            elif misread := list(misread_texts(tracked, change)):
                self.tables.lose(shard, *misread_message(shard, misread), "SM-1115")


@lru_cache(maxsize=_MOST_CONTEXTS)
def _context_in(context: ServerContext, database: str, defaults: Defaults | None) -> ServerContext:
    """The context of a statement in a database; ``defaults`` are the server's."""
    return in_database(replace(context, default_database=database), defaults)


def _compared_names(names: Sequence[str]) -> list[str]:
    """Column names for comparison; Debezium sometimes keeps a name's backtick doubled."""
    return [name.lower().replace("``", "`") for name in names]
