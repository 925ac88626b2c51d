"""Actions of an ALTER TABLE as canonical text.

Two shards made the same change if these texts are equal; a change with other texts may still have
the same effect (``lattice.change_effect``). Quoting, case, comments, display widths and the place
of a column are not in the texts. People read these texts too.
"""

from __future__ import annotations

from shardmerge.schemas.ddl.canonical.literals import normal_literal
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_text import column_type, string_literal
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.tables import (
    Check,
    Column,
    Default,
    DefaultKind,
    ForeignKey,
    Index,
    IndexKind,
)

from .changes import (
    Action,
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddIndex,
    AlterColumnVisibility,
    AlterDefault,
    AlterIndexVisibility,
    ChangeColumn,
    ConvertCharset,
    DropColumn,
    DropConstraint,
    DropIndex,
    MovePartition,
    NoEffect,
    RenameColumn,
    RenameIndex,
    RenameTableTo,
    SetDefaultCharset,
    SetTableOption,
    WrittenLiteral,
)


def describe(action: Action, column: Column | None) -> str:  # noqa: C901 -- a line per kind of action
    """One action's canonical text.

    Args:
        action: The action as it was parsed.
        column: For actions on a column, its normalised definition after the change, or before it if
            the column is dropped; None if it is not known.
    """
    match action:
        case AddColumn():
            text = f"ADD COLUMN {column_text(column or action.column)}"
            return _with_inline(text, action.indexes, action.checks)
        case ChangeColumn():
            text = f"CHANGE COLUMN {_name(action.name)} {column_text(column or action.column)}"
            return _with_inline(text, action.indexes, action.checks)
        case DropColumn():
            return f"DROP COLUMN {_name(action.name)}"
        case RenameColumn():
            return f"RENAME COLUMN {_name(action.name)} TO {_name(action.to)}"
        case AlterDefault(name, default=None):
            return f"ALTER COLUMN {_name(name)} DROP DEFAULT"
        case AlterDefault(name, default):
            if column is not None and isinstance(default, WrittenLiteral):
                default = normal_literal(default, column.type)
            return f"ALTER COLUMN {_name(name)} SET{_default(default)}"
        case AlterColumnVisibility():
            word = "INVISIBLE" if action.invisible else "VISIBLE"
            return f"ALTER COLUMN {_name(action.name)} SET {word}"
        case AddIndex():
            return f"ADD {_index(action.index)}"
        case DropIndex(name):
            return "DROP PRIMARY KEY" if name == "PRIMARY" else f"DROP INDEX {_name(name)}"
        case RenameIndex():
            return f"RENAME INDEX {_name(action.name)} TO {_name(action.to)}"
        case AlterIndexVisibility():
            word = "INVISIBLE" if action.invisible else "VISIBLE"
            return f"ALTER INDEX {_name(action.name)} {word}"
        case AddCheck():
            return _check(action.check)
        case AddForeignKey():
            return f"ADD {_foreign_key(action.foreign_key)}"
        case DropConstraint(name, kind):
            word = "CONSTRAINT" if kind == "any" else kind.upper()
            return f"DROP {word} {_name(name)}"
        case SetTableOption(name, value):
            return f"{name} = {value}"
        case SetDefaultCharset() | ConvertCharset():
            return _charset(action)
        case RenameTableTo(to):
            prefix = f"{quote_identifier(to.database)}." if to.database else ""
            return f"RENAME TO {prefix}{quote_identifier(to.table)}"
        case NoEffect(text) | MovePartition(text):
            return text


def column_text(column: Column) -> str:
    """A column definition without its comment."""
    text = f"{_name(column.name)} {column_type(column.type)}"
    if column.generated is not None:
        storage = "STORED" if column.generated.stored else "VIRTUAL"
        text += f" GENERATED ALWAYS AS ({column.generated.expression}) {storage}"
    if not column.nullable:
        text += " NOT NULL"
    if column.default is not None and not (
        column.nullable and column.default.kind is DefaultKind.NULL
    ):
        text += _default(column.default)
    if column.on_update:
        text += f" ON UPDATE {column.on_update}"
    if column.auto_increment:
        text += " AUTO_INCREMENT"
    if column.invisible:
        text += " INVISIBLE"
    return text


def definition(column: Column) -> str:
    """Type and properties of a column, as SQL without its name and comment."""
    return column_text(replace(column, name="")).removeprefix("``").strip()


def _name(name: str) -> str:
    return quote_identifier(name.lower())


def _default(default: Default | None) -> str:
    if default is None:
        return ""
    if default.kind is DefaultKind.NULL:
        return " DEFAULT NULL"
    if default.kind is DefaultKind.LITERAL:
        return f" DEFAULT {string_literal(default.text)}"
    return f" DEFAULT ({default.text})"


def _with_inline(text: str, indexes: tuple[Index, ...], checks: tuple[Check, ...]) -> str:
    parts = [text]
    for index in indexes:
        parts.append("PRIMARY KEY" if index.kind is IndexKind.PRIMARY else "UNIQUE")
    parts += (_check(check).removeprefix("ADD ") for check in checks)
    return " ".join(parts)


def _index(index: Index) -> str:
    words = {
        IndexKind.PRIMARY: "PRIMARY KEY", IndexKind.UNIQUE: "UNIQUE INDEX",
        IndexKind.PLAIN: "INDEX", IndexKind.FULLTEXT: "FULLTEXT INDEX",
        IndexKind.SPATIAL: "SPATIAL INDEX", IndexKind.VECTOR: "VECTOR INDEX",
    }  # fmt: skip
    text = words[index.kind]
    if index.name and index.kind is not IndexKind.PRIMARY:
        text += f" {_name(index.name)}"
    parts: list[str] = []
    for part in index.parts:
        item = _name(part.column) if part.column else f"({part.expression})"
        if part.length is not None:
            item += f"({part.length})"
        parts.append(item + (" DESC" if part.descending else ""))
    text += f" ({', '.join(parts)})"
    if index.parser:
        text += f" WITH PARSER {index.parser}"
    return text + (" INVISIBLE" if index.invisible else "")


def _check(check: Check) -> str:
    enforced = "" if check.enforced else " NOT ENFORCED"
    if not check.expression:
        return f"ALTER CHECK {_name(check.name)}{enforced or ' ENFORCED'}"
    name = f"CONSTRAINT {_name(check.name)} " if check.name else ""
    return f"ADD {name}CHECK ({check.expression}){enforced}"


def _foreign_key(key: ForeignKey) -> str:
    text = f"CONSTRAINT {_name(key.name)} " if key.name else ""
    text += f"FOREIGN KEY ({', '.join(map(_name, key.columns))}) REFERENCES "
    if key.parent_database:
        text += f"{quote_identifier(key.parent_database)}."
    text += f"{quote_identifier(key.parent_table)} ({', '.join(map(_name, key.parent_columns))})"
    if key.on_delete:
        text += f" ON DELETE {key.on_delete}"
    return text + (f" ON UPDATE {key.on_update}" if key.on_update else "")


def _charset(action: SetDefaultCharset | ConvertCharset) -> str:
    head = "CONVERT TO" if isinstance(action, ConvertCharset) else "DEFAULT"
    charset = f" CHARACTER SET {action.charset}" if action.charset else ""
    collation = f" COLLATE {action.collation}" if action.collation else ""
    return f"{head}{charset}{collation}"
