"""CREATE TABLE.

Source: MySQL Reference Manual, "CREATE TABLE Statement".
"""

from __future__ import annotations

from collections.abc import Iterator

from shardmerge.schemas.ddl.canonical.implicit_indexes import implicit_index
from shardmerge.schemas.ddl.changes import (
    CreateTable,
    CreateTableLike,
    SetDefaultCharset,
    Statement,
    WrittenForeignKey,
)
from shardmerge.schemas.ddl.grammar.definitions.columns import Definition, column_definition
from shardmerge.schemas.ddl.grammar.definitions.indexes import begins_constraint, constraint
from shardmerge.schemas.ddl.grammar.tokens.lexer import END, Cursor
from shardmerge.schemas.ddl.grammar.tokens.qualified import table_name
from shardmerge.schemas.model.charsets import charset_of
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Check, ForeignKey, Index, TableSchema

from .options import Option, table_option
from .partitions import partitioning
from .query import in_parentheses, query_columns

_NOT_SCHEMA = frozenset({"AUTO_INCREMENT", "START TRANSACTION", "COMMENT"})


def create_table(cursor: Cursor, *, replaces: bool) -> Statement:
    """Read a CREATE TABLE statement from the word TABLE (or TEMPORARY) on."""
    temporary = cursor.accept("TEMPORARY")
    cursor.expect("TABLE")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = table_name(cursor)
    if cursor.accept("LIKE"):
        return CreateTableLike(name, table_name(cursor), if_not_exists, temporary)
    if cursor.word == "(" and cursor.ahead() == "LIKE":
        cursor.expect("(", "LIKE")
        like = table_name(cursor)
        cursor.expect(")")
        return CreateTableLike(name, like, if_not_exists, temporary)
    definitions: list[Definition] = []
    constraints: list[Index | Check | ForeignKey] = []
    if cursor.word == "(" and not in_parentheses(cursor):
        _elements(cursor, definitions, constraints)
    options = _options(cursor)
    partitions = partitioning(cursor) if cursor.word == "PARTITION" else ""
    queried = query_columns(cursor)
    if queried is None:
        if cursor.word not in (END, ";"):
            cursor.fail("a table option")
        queried = ()
    names = {definition.column.name.lower() for definition in definitions}
    from_query = not names.issuperset(name.lower() for name in queried)
    if queried:
        definitions = _with_query(definitions, queried, cursor.context)
    home = name.database or cursor.context.default_database
    constraints = at_home(constraints, home)
    schema = _schema(definitions, constraints, options, partitions, cursor.context)
    return CreateTable(name, schema, if_not_exists and not replaces, temporary, from_query)


def _with_query(
    definitions: list[Definition], queried: tuple[str, ...], context: ServerContext
) -> list[Definition]:
    """The definitions in the table's order: columns of the query come last, in the query's order.

    Their names are spelled as in the query. MySQL also takes their comments from the query's
    columns; the statement does not show these, so they are empty here.

    Source: measured on MySQL 5.7, 8.0, 9.7 and MariaDB 10.11.
    """
    names = {name.lower() for name in queried}
    kept = [d for d in definitions if d.column.name.lower() not in names]
    for name in queried:
        for found in definitions:
            if found.column.name.lower() == name.lower():
                comment = found.column.comment if context.is_mariadb else ""
                kept.append(
                    replace(found, column=replace(found.column, name=name, comment=comment))
                )
    return kept


def _elements(
    cursor: Cursor,
    definitions: list[Definition],
    constraints: list[Index | Check | ForeignKey],
) -> None:
    cursor.expect("(")
    while True:
        if begins_constraint(cursor):
            constraints.append(constraint(cursor)[0])
        elif cursor.word == "PERIOD" and cursor.ahead() == "FOR" and cursor.context.is_mariadb:
            _period(cursor, definitions)
        else:
            found = column_definition(cursor)
            definitions.append(found)
            # Generated names depend on the order in which indexes and checks are written.
            constraints += (*found.indexes, *found.checks, *found.foreign_keys)
        if not cursor.accept(","):
            break
    cursor.expect(")")


def _period(cursor: Cursor, definitions: list[Definition]) -> None:
    cursor.expect("PERIOD", "FOR")
    cursor.identifier("a period name")
    cursor.expect("(")
    names = {cursor.identifier("a column name").lower()}
    cursor.expect(",")
    names.add(cursor.identifier("a column name").lower())
    cursor.expect(")")
    # The columns of a period are NOT NULL.
    definitions[:] = [
        replace(found, column=replace(found.column, nullable=False))
        if found.column.name.lower() in names
        else found
        for found in definitions
    ]


def _options(cursor: Cursor) -> list[Option]:
    options: list[Option] = []
    while (option := table_option(cursor)) is not None:
        options.append(option)
        cursor.accept(",")
    return options


def _schema(
    definitions: list[Definition],
    constraints: list[Index | Check | ForeignKey],
    options: list[Option],
    partitions: str,
    context: ServerContext,
) -> TableSchema:
    charset, collation = "", ""
    comment = ""
    kept: dict[str, str] = {}
    for option in options:
        if isinstance(option, SetDefaultCharset):
            charset, collation = merge_charset(charset, collation, option, context)
        elif option.name == "COMMENT":
            comment = option.value
        elif option.name not in _NOT_SCHEMA:
            kept[option.name] = option.value
    return TableSchema(
        columns=tuple(definition.column for definition in definitions),
        indexes=tuple(_indexes(constraints)),
        checks=tuple(item for item in constraints if isinstance(item, Check)),
        foreign_keys=tuple(item for item in constraints if isinstance(item, ForeignKey)),
        charset=charset,
        collation=collation,
        comment=comment,
        options=tuple(sorted(kept.items())),
        partitioning=partitions,
    )


def _indexes(constraints: list[Index | Check | ForeignKey]) -> Iterator[Index]:
    """The indexes, including those for foreign keys. Generated names depend on their order."""
    for item in constraints:
        if isinstance(item, Index):
            yield item
        elif isinstance(item, WrittenForeignKey):
            yield implicit_index(item)


def at_home(
    constraints: list[Index | Check | ForeignKey], home: str
) -> list[Index | Check | ForeignKey]:
    """Remove the parent's database if it is the table's own database, as the server does."""
    return [
        replace(item, parent_database="")
        if isinstance(item, ForeignKey) and item.parent_database == home
        else item
        for item in constraints
    ]


def merge_charset(
    charset: str, collation: str, option: SetDefaultCharset, context: ServerContext
) -> tuple[str, str]:
    """Add a charset or collation option to earlier options; a collation implies its charset.

    Before MySQL 8.0.27 a charset after a collation resets the collation. Later MySQL and MariaDB
    keep a collation of that charset.

    Source: measured on 5.7, 8.0.15, 9.7 and MariaDB 10.11; parse_tree_nodes.cc
    ``set_default_charset`` (read): 8.0.26 resets it, 8.0.35 does not.
    """
    if option.collation == "default":
        return charset, "" if charset else "default"
    if option.collation:
        return charset_of(option.collation) or charset, option.collation
    if option.charset == "default" and collation and context.is_mariadb:
        return charset, collation  # They agree, or the server refuses the statement.
    if option.charset:
        kept = context.at_least(80027, 0) and charset_of(collation) == option.charset
        return option.charset, collation if kept else ""
    return charset, ""
