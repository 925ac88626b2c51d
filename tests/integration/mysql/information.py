"""A table as ``information_schema`` tells it, against a tracked schema: a source without grammar.

Both sides become lines of text of the same form. What a server writes in a form of its own
(expressions, binary and bit defaults) is left to SHOW CREATE TABLE, see ``twin``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import unified_diff

from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.charsets import charset_name, collation_name
from shardmerge.schemas.model.tables import Column, DefaultKind, Index, IndexKind, TableSchema
from shardmerge.schemas.model.types import BINARY_NAMES, TEXT_NAMES, ColumnType

Query = Callable[[str], tuple[tuple[object, ...], ...]]
_WIDTH = re.compile(r"^((?:tiny|small|medium|big)?int|year)\(\d+\)")
_UNTOLD_DEFAULTS = frozenset({*BINARY_NAMES, *TEXT_NAMES, "bit"})
_COLUMNS = (
    "column_name, column_type, is_nullable, character_set_name, collation_name, column_default,"
    " extra"
)
_INDEXES = "index_name, seq_in_index, non_unique, column_name, sub_part, collation, index_type"


class Information:
    """Reads ``information_schema`` of one server.

    Args:
        query: Executes a statement.
        context: The server.
    """

    def __init__(self, query: Query, context: ServerContext) -> None:
        self._query = query
        self._context = context
        # MariaDB 11.8's table of collations names no character set for those of UCA 14.0.0.
        rows = query(
            "SELECT character_set_name, default_collate_name FROM information_schema.character_sets"
        )
        self._defaults: Mapping[str, str] = {
            charset_name(str(charset)): collation_name(str(collation))
            for charset, collation in rows
        }

    def differences(self, database: str, table: str, tracked: TableSchema) -> list[str]:
        """Lines that only one side has, marked with ``-`` (tracked) and ``+`` (server)."""
        ours = self._tracked_lines(tracked)
        theirs = self._server_lines(f"table_schema = '{database}' AND table_name = {_text(table)}")
        if ours == theirs:
            return []
        marked = list(unified_diff(ours, theirs, lineterm="", n=0))[2:]
        return [f"{database}.{table} {line}" for line in marked if not line.startswith("@@")]

    # --- tracked ------------------------------------------------------------------------------

    def _tracked_lines(self, schema: TableSchema) -> list[str]:
        lines = [self._tracked_column(column) for column in schema.columns]
        lines += sorted(
            line for index in schema.indexes for line in self._tracked_index(index, schema)
        )
        if self._context.stores_checks:
            lines += sorted(
                f"check {c.name} {'YES' if c.enforced else 'NO'}"
                for c in schema.checks
                if not (self._context.is_mariadb and schema.column(c.name))
            )
        lines += sorted(
            f"foreign key {key.name} {place} {column} {key.parent_table} {parent}"
            for key in schema.foreign_keys
            for place, (column, parent) in enumerate(
                zip(key.columns, key.parent_columns, strict=True), 1
            )
        )
        return lines

    def _tracked_column(self, column: Column) -> str:
        kind = column.type
        collation = ""
        charset = kind.charset
        if charset == "binary" and not self._context.is_mariadb:
            charset = ""
        elif charset:
            collation = kind.collation or self._defaults[charset]
        default = "-"
        is_told = kind.name not in _UNTOLD_DEFAULTS and column.generated is None
        if kind.charset == "binary" and not self._context.is_mariadb:
            is_told = False  # Of an ENUM its bytes are told.
        if is_told and column.default is not None:
            is_literal = column.default.kind is DefaultKind.LITERAL
            told = _told_number(type_text(kind), column.default.text)
            default = f"'{told}'" if is_literal else str(column.default.kind)
        if default == "null":
            default = "-"
        facts = [
            column.name, type_text(kind), "YES" if column.nullable else "NO", charset,
            collation, default,
        ]  # fmt: skip
        facts += ["auto_increment"] * column.auto_increment
        facts += ["on update"] * bool(column.on_update)
        if column.generated is not None:
            facts.append("stored" if column.generated.stored else "virtual")
        return "column " + " | ".join([*facts, *["invisible"] * column.invisible])

    def _tracked_index(self, index: Index, schema: TableSchema) -> list[str]:
        lines = []
        for place, part in enumerate(index.parts, 1):
            direction = "" if index.kind in _UNORDERED else "D" if part.descending else "A"
            kind = str(index.kind) if index.kind in _UNORDERED else ""
            lines.append(
                f"index {index.name} {place} {'0' if index.is_unique else '1'}"
                f" {part.column or '(expression)'} {part.length or ''} {direction} {kind}"
                f"{' invisible' if index.invisible else ''}"
            )
        return lines

    # --- server -------------------------------------------------------------------------------

    def _server_lines(self, where: str) -> list[str]:
        rows = self._query(
            f"SELECT {_COLUMNS} FROM information_schema.columns"
            f" WHERE {where} ORDER BY ordinal_position"
        )
        lines = [self._server_column(tuple(row)) for row in rows]
        more = self._index_columns()
        rows = self._query(
            f"SELECT {_INDEXES}{more} FROM information_schema.statistics WHERE {where}"
        )
        lines += sorted(self._server_index(tuple(row)) for row in rows)
        if self._context.stores_checks:
            lines += sorted(self._server_checks(where))
        rows = self._query(
            "SELECT constraint_name, ordinal_position, column_name, referenced_table_name,"
            f" referenced_column_name FROM information_schema.key_column_usage WHERE {where}"
            " AND referenced_table_name IS NOT NULL"
        )
        lines += sorted("foreign key " + " ".join(map(str, row)) for row in rows)
        return lines

    def _server_column(self, row: tuple[object, ...]) -> str:
        name, kind, nullable, charset, collation, default, extra = (
            "" if fact is None else str(fact) for fact in row
        )
        kind = kind.replace(" /*M!100301 COMPRESSED*/", "")
        kind = _WIDTH.sub(lambda m: m[0] if m[0] == "tinyint(1)" else m[1], kind)
        kind = re.sub(r"^tinyint\(1\) (unsigned|zerofill)", r"tinyint \1", kind)
        kind = kind.replace("geomcollection", "geometrycollection")
        kind = kind.replace("\\\\", "\\").replace("\\0", "\0")
        extra = extra.lower()
        default = _told_number(kind, default)
        told = self._default(kind, default, row[5] is None, extra)
        if kind.startswith(("enum", "set")) and not charset:
            told = "-"
        facts = [
            name, kind, nullable, charset_name(charset), collation_name(collation), told,
        ]  # fmt: skip
        facts += ["auto_increment"] * ("auto_increment" in extra)
        facts += ["on update"] * ("on update" in extra)
        if "virtual generated" in extra:
            facts.append("virtual")
        elif "stored generated" in extra or "persistent" in extra:
            facts.append("stored")
        return "column " + " | ".join([*facts, *["invisible"] * ("invisible" in extra)])

    def _default(self, kind: str, default: str, is_null: bool, extra: str) -> str:
        if kind.partition("(")[0].partition(" ")[0] in _UNTOLD_DEFAULTS or is_null:
            return "-"
        if "virtual generated" in extra or "stored generated" in extra:
            return "-"
        if not self._context.is_mariadb:
            is_expression = "default_generated" in extra or default.startswith("CURRENT_TIMESTAMP")
            return "expression" if is_expression else f"'{default}'"
        # MariaDB tells the text that would stand in the statement.
        if default == "NULL":
            return "-"
        if default.startswith("'"):
            text = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), default[1:-1])
            return f"'{text.replace(chr(39) * 2, chr(39))}'"
        return f"'{default}'" if _NUMBER.fullmatch(default) else "expression"

    def _index_columns(self) -> str:
        if self._context.at_least(80013, None):
            return ", is_visible, expression"
        if self._context.at_least(80000, None):
            return ", is_visible, NULL"
        return (
            ", IF(ignored = 'YES', 'NO', 'YES'), NULL"
            if self._context.at_least(None, 100600)
            else ", 'YES', NULL"
        )

    @staticmethod
    def _server_index(row: tuple[object, ...]) -> str:
        name, place, non_unique, column, length, direction, kind, visible, expression = row
        word = {"FULLTEXT": "fulltext", "SPATIAL": "spatial"}.get(str(kind), "")
        part = "(expression)" if expression is not None else column
        invisible = "" if visible == "YES" else " invisible"
        sub_part = "" if word or length is None else length
        return (
            f"index {name} {place} {non_unique} {part} {sub_part} "
            f"{'' if word else direction} {word}{invisible}"
        )

    def _server_checks(self, where: str) -> list[str]:
        if self._context.is_mariadb:
            where = where.replace("table_schema", "constraint_schema")
            rows = self._query(
                "SELECT constraint_name, level, check_clause"
                f" FROM information_schema.check_constraints WHERE {where}"
            )
            # A column's own check keeps its name here when the column is renamed.
            return [
                f"check {name} YES"
                for name, level, clause in rows
                if level == "Table" and not _PERIOD.match(str(clause))
            ]
        rows = self._query(
            "SELECT constraint_name, enforced FROM information_schema.table_constraints"
            f" WHERE {where} AND constraint_type = 'CHECK'"
        )
        return [f"check {name} {enforced}" for name, enforced in rows]


def _told_number(kind: str, text: str) -> str:
    """A number without the zeros and the exponent that only one side writes."""
    if kind.startswith(("float", "double")) and _NUMBER.fullmatch(text):
        return repr(float(text))
    return re.sub(r"^0+(?=\d)", "", text) if kind.endswith("zerofill") else text


_NUMBER = re.compile(r"-?[\d.]+(e[-+]?\d+)?")
_PERIOD = re.compile(r"`[^`]+` < `[^`]+`$")
"""The check that a PERIOD makes; SHOW CREATE TABLE does not tell it."""
_UNORDERED = (IndexKind.FULLTEXT, IndexKind.SPATIAL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}


def type_text(kind: ColumnType) -> str:
    """A type as ``column_type`` tells it, without display widths."""
    text = kind.name
    if kind.elements:
        text += "(" + ",".join("'" + e.replace("'", "''") + "'" for e in kind.elements) + ")"
    elif kind.length is not None:
        text += f"({kind.length}" + (f",{kind.scale})" if kind.scale is not None else ")")
    elif kind.fsp:
        text += f"({kind.fsp})"
    return text + " unsigned" * kind.unsigned + " zerofill" * kind.zerofill


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
