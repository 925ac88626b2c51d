"""ALTER TABLE.

Source: MySQL Reference Manual, "ALTER TABLE Statement"; MariaDB's for IF [NOT] EXISTS.
"""

from __future__ import annotations

from shardmerge.schemas.ddl.changes import (
    Action,
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddIndex,
    AlterColumnVisibility,
    AlterDefault,
    AlterIndexVisibility,
    AlterTable,
    ChangeColumn,
    ConvertCharset,
    DropColumn,
    DropConstraint,
    DropIndex,
    NoEffect,
    Place,
    RenameColumn,
    RenameIndex,
    RenameTableTo,
    SetTableOption,
)
from shardmerge.schemas.ddl.grammar.definitions.columns import Definition, column_definition
from shardmerge.schemas.ddl.grammar.definitions.defaults import default_value
from shardmerge.schemas.ddl.grammar.definitions.indexes import (
    begins_constraint,
    constraint,
    lock_wait,
)
from shardmerge.schemas.ddl.grammar.tokens.charset_words import accept_charset, collation_word
from shardmerge.schemas.ddl.grammar.tokens.lexer import END, Cursor
from shardmerge.schemas.ddl.grammar.tokens.qualified import field_name, table_name
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.tables import Check, Index

from .options import charset_value, table_option
from .partitions import partition_action, partition_list, spaced


def alter_table(cursor: Cursor) -> AlterTable:
    """Read an ALTER TABLE statement from the word TABLE on."""
    cursor.expect("TABLE")
    if_exists = cursor.context.is_mariadb and cursor.accept("IF", "EXISTS")
    name = table_name(cursor)
    lock_wait(cursor)
    actions: list[Action] = []
    while cursor.word not in (END, ";"):
        actions += _action(cursor)
        if cursor.accept(","):
            if cursor.word in (END, ";"):
                cursor.fail("an action")
        elif not _may_follow_without_comma(cursor):
            break
    home = name.database or cursor.context.default_database
    return AlterTable(
        name, tuple([_without_own_database(action, home) for action in actions]), if_exists
    )


def _without_own_database(action: Action, home: str) -> Action:
    if isinstance(action, AddForeignKey) and action.foreign_key.parent_database == home:
        return replace(action, foreign_key=replace(action.foreign_key, parent_database=""))
    return action


def _may_follow_without_comma(cursor: Cursor) -> bool:
    """Whether the next action needs no comma: table options, and partitioning at the end."""
    word, after = cursor.word, cursor.ahead()
    if word == "PARTITION":
        return after == "BY"
    if word == "REMOVE":
        return after == "PARTITIONING"
    start = cursor.index
    found = table_option(cursor) is not None
    cursor.seek(start)
    return found


def _action(cursor: Cursor) -> list[Action]:
    partition = partition_action(cursor)
    if partition is not None:
        return [partition]
    reader = _READERS.get(cursor.word)
    if reader is not None:
        found = reader(cursor)
        if found:
            return found
    option = table_option(cursor)
    if option is not None:
        if isinstance(option, SetTableOption) and option.name == "AUTO_INCREMENT":
            return [NoEffect(f"AUTO_INCREMENT = {option.value}")]
        return [option]
    return cursor.fail("an ALTER TABLE action")


def _add(cursor: Cursor) -> list[Action]:
    cursor.expect("ADD")
    if begins_constraint(cursor):
        return [_added(*constraint(cursor))]
    if cursor.context.is_mariadb and cursor.word in ("SYSTEM", "PERIOD"):
        if cursor.accept("SYSTEM", "VERSIONING"):
            return [NoEffect("ADD SYSTEM VERSIONING")]
        if cursor.ahead() in ("FOR", "IF"):
            start = cursor.index
            cursor.expect("PERIOD")
            cursor.accept("IF", "NOT", "EXISTS")
            cursor.expect("FOR")
            cursor.identifier("a period name")
            cursor.expect("(")
            cursor.identifier("a column name")
            cursor.expect(",")
            cursor.identifier("a column name")
            cursor.expect(")")
            return [NoEffect("ADD " + spaced(cursor, start))]
    cursor.accept("COLUMN")
    quiet = cursor.accept("IF", "NOT", "EXISTS")
    if not cursor.accept("("):
        return _added_column(cursor, column_definition(cursor), _place(cursor), quiet)
    actions: list[Action] = []
    while True:
        if begins_constraint(cursor):
            actions.append(_added(*constraint(cursor)))
        else:
            actions += _added_column(cursor, column_definition(cursor), None, quiet)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return actions


def _added(found: object, quiet: bool) -> Action:
    if isinstance(found, Index):
        return AddIndex(found, quiet)
    if isinstance(found, Check):
        return AddCheck(found, quiet)
    return AddForeignKey(found, quiet)  # type: ignore[arg-type]


def _added_column(
    cursor: Cursor, found: Definition, place: Place | None, quiet: bool
) -> list[Action]:
    added = AddColumn(found.column, place, quiet, found.indexes, found.checks)
    return [added, *(AddForeignKey(key) for key in found.foreign_keys)]


def _place(cursor: Cursor) -> Place | None:
    if cursor.accept("FIRST"):
        return Place()
    if cursor.accept("AFTER"):
        return Place(cursor.identifier("a column name"))
    return None


def _modify(cursor: Cursor) -> list[Action]:
    cursor.expect("MODIFY")
    cursor.accept("COLUMN")
    quiet = cursor.accept("IF", "EXISTS")
    found = column_definition(cursor)
    return _changed(cursor, found.column.name, found, quiet)


def _change(cursor: Cursor) -> list[Action]:
    cursor.expect("CHANGE")
    cursor.accept("COLUMN")
    quiet = cursor.accept("IF", "EXISTS")
    name = field_name(cursor, "a column name")
    return _changed(cursor, name, column_definition(cursor), quiet)


def _changed(cursor: Cursor, name: str, found: Definition, quiet: bool) -> list[Action]:
    changed = ChangeColumn(name, found.column, _place(cursor), quiet, found.indexes, found.checks)
    return [changed, *(AddForeignKey(key) for key in found.foreign_keys)]


def _drop(cursor: Cursor) -> list[Action]:
    cursor.expect("DROP")
    if cursor.accept("PRIMARY", "KEY"):
        return [DropIndex("PRIMARY")]
    if cursor.word in ("INDEX", "KEY"):
        cursor.advance()
        quiet = cursor.accept("IF", "EXISTS")
        return [DropIndex(field_name(cursor, "an index name"), quiet)]
    if cursor.word in ("FOREIGN", "CHECK", "CONSTRAINT"):
        kind = {"FOREIGN": "foreign key", "CHECK": "check", "CONSTRAINT": "any"}[cursor.word]
        if cursor.accept("FOREIGN"):
            cursor.expect("KEY")
        else:
            cursor.advance()
        quiet = cursor.accept("IF", "EXISTS")
        if kind == "any" and cursor.accept("PRIMARY"):
            return [DropIndex("PRIMARY", quiet)]
        return [DropConstraint(field_name(cursor, "a constraint name"), kind, quiet)]
    if cursor.context.is_mariadb and cursor.accept("SYSTEM", "VERSIONING"):
        return [NoEffect("DROP SYSTEM VERSIONING")]
    if cursor.context.is_mariadb and cursor.word == "PERIOD" and cursor.ahead() in ("FOR", "IF"):
        cursor.advance()
        cursor.accept("IF", "EXISTS")
        cursor.expect("FOR")
        return [NoEffect(f"DROP PERIOD FOR {cursor.identifier()}")]
    cursor.accept("COLUMN")
    quiet = cursor.accept("IF", "EXISTS")
    name = field_name(cursor, "a column name")
    cursor.accept_any(("RESTRICT", "CASCADE"))
    return [DropColumn(name, quiet)]


def _alter(cursor: Cursor) -> list[Action]:
    cursor.expect("ALTER")
    if cursor.word in ("INDEX", "KEY"):
        cursor.advance()
        quiet = cursor.accept("IF", "EXISTS")
        name = cursor.identifier("an index name")
        negated = cursor.context.is_mariadb and cursor.accept("NOT")
        word = cursor.accept_any(("VISIBLE", "INVISIBLE", "IGNORED"))
        if not word:
            cursor.fail("VISIBLE or INVISIBLE")
        return [AlterIndexVisibility(name, word != "VISIBLE" and not negated, quiet)]
    if cursor.word in ("CHECK", "CONSTRAINT"):
        cursor.advance()
        name = cursor.identifier("a constraint name")
        enforced = not cursor.accept("NOT")
        cursor.expect("ENFORCED")
        return [AddCheck(Check(name, "", enforced))]
    cursor.accept("COLUMN")
    quiet = cursor.accept("IF", "EXISTS")
    name = cursor.identifier("a column name")
    if cursor.accept("DROP", "DEFAULT"):
        return [AlterDefault(name, None, quiet)]
    cursor.expect("SET")
    if word := cursor.accept_any(("VISIBLE", "INVISIBLE")):
        return [AlterColumnVisibility(name, word == "INVISIBLE")]
    cursor.expect("DEFAULT")
    return [AlterDefault(name, default_value(cursor, alters=True), quiet)]


def _rename(cursor: Cursor) -> list[Action]:
    cursor.expect("RENAME")
    if cursor.accept("COLUMN"):
        quiet = cursor.accept("IF", "EXISTS")
        name = cursor.identifier("a column name")
        cursor.expect("TO")
        return [RenameColumn(name, cursor.identifier("a column name"), quiet)]
    if cursor.word in ("INDEX", "KEY"):
        cursor.advance()
        quiet = cursor.accept("IF", "EXISTS")
        name = cursor.identifier("an index name")
        cursor.expect("TO")
        return [RenameIndex(name, cursor.identifier("an index name"), quiet)]
    cursor.accept_any(("TO", "AS", "="))
    return [RenameTableTo(table_name(cursor))]


def _convert(cursor: Cursor) -> list[Action]:
    cursor.expect("CONVERT", "TO")
    if not accept_charset(cursor):
        cursor.fail("CHARACTER SET")
    charset = charset_value(cursor)
    collation = ""
    if cursor.accept("COLLATE"):
        cursor.accept("=")
        collation = "default" if cursor.accept("DEFAULT") else collation_word(cursor)
    return [ConvertCharset(charset, collation)]


def _order(cursor: Cursor) -> list[Action]:
    start = cursor.index
    cursor.expect("ORDER", "BY")
    while True:
        cursor.identifier("a column name")
        while cursor.accept("."):
            cursor.identifier("a column name", reserved=True)
        if not cursor.accept("ASC"):
            cursor.accept("DESC")
        # The comma continues the list of columns if a name follows, and not another action.
        if not (cursor.word == "," and cursor.ahead(2) in (",", END, "ASC", "DESC", ".", ";")):
            break
        cursor.advance()
    return [NoEffect(spaced(cursor, start))]


def _algorithm(cursor: Cursor) -> list[Action]:
    word = cursor.word
    if word == "ALGORITHM":
        values: tuple[str, ...] = ("DEFAULT", "INSTANT", "INPLACE", "COPY", "NOCOPY")
    else:
        values = ("DEFAULT", "NONE", "SHARED", "EXCLUSIVE")
    cursor.advance()
    cursor.accept("=")
    value = cursor.accept_any(values)
    if not value:
        cursor.fail(" or ".join(values))
    return [NoEffect(f"{word} = {value}")]


def _fixed_action(cursor: Cursor) -> list[Action]:
    """Read an action of fixed words that does not change the schema."""
    start = cursor.index
    for words in _FIXED:
        if cursor.accept(*words):
            if words[0].startswith("SECONDARY_") and cursor.accept("PARTITION"):
                partition_list(cursor)
            return [NoEffect(spaced(cursor, start))]
    return []


_FIXED = (
    ("FORCE",),
    ("DISABLE", "KEYS"),
    ("ENABLE", "KEYS"),
    ("DISCARD", "TABLESPACE"),
    ("IMPORT", "TABLESPACE"),
    ("WITH", "VALIDATION"),
    ("WITHOUT", "VALIDATION"),
    ("SECONDARY_LOAD",),
    ("SECONDARY_UNLOAD",),
)
_READERS = {
    "ADD": _add,
    "MODIFY": _modify,
    "CHANGE": _change,
    "DROP": _drop,
    "ALTER": _alter,
    "RENAME": _rename,
    "CONVERT": _convert,
    "ORDER": _order,
    "ALGORITHM": _algorithm,
    "LOCK": _algorithm,
    **dict.fromkeys((words[0] for words in _FIXED), _fixed_action),
}
