"""Random DDL on a few tables: mostly sensible, always the same for one seed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

TABLES = ("t0", "t1", "t2")
_COLUMNS = ("a", "b", "c", "d", "e", "f", "Gg", "h h")
_INDEXES = ("i1", "i2", "i3", "a", "b", "i x")
_INTEGERS = ("TINYINT", "SMALLINT", "MEDIUMINT(8)", "INT", "INTEGER(11)", "BIGINT", "BOOL")
_CHARSETS = ("latin1", "utf8mb4", "utf8", "ascii", "binary", "cp1251")
_COLLATIONS = (
    "utf8mb4_bin", "latin1_bin", "utf8mb4_general_ci", "utf8_general_ci", "latin1_german1_ci",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Known:
    """What a table has now, so that most statements make sense."""

    columns: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()

    def column(self, chance: Random) -> str:
        """A column that most probably exists."""
        return chance.choice(self.columns if self.columns and chance.random() < 0.95 else _COLUMNS)

    def fresh(self, chance: Random) -> str:
        """A name for a column that most probably does not exist."""
        free = [name for name in _COLUMNS if name not in self.columns]
        return chance.choice(free if free and chance.random() < 0.95 else _COLUMNS)

    def index(self, chance: Random) -> str:
        """An index that most probably exists."""
        names = [name for name in self.indexes if name != "PRIMARY"]
        return "`" + chance.choice(names or _INDEXES) + "`"


def create_table(chance: Random, name: str) -> str:
    """A CREATE TABLE statement."""
    columns = chance.sample(_COLUMNS, chance.randint(2, 5))
    parts = [f"`{column}` {definition(chance)}" for column in columns]
    parts += [index(chance, columns) for _ in range(chance.randint(0, 3))]
    if chance.random() < 0.5:
        parts.append(f"PRIMARY KEY ({_part(chance, columns)})")
    options = ""
    if chance.random() < 0.4:
        options = f" DEFAULT CHARSET={chance.choice(_CHARSETS)}"
    elif chance.random() < 0.3:
        options = f" COLLATE {chance.choice(_COLLATIONS)}"
    return f"CREATE TABLE {name} ({', '.join(parts)}){options}"


def alter_table(chance: Random, name: str, known: Known) -> str:
    """An ALTER TABLE statement of one or a few actions."""
    count = 1 if chance.random() < 0.5 else chance.randint(2, 4)
    actions = [chance.choice(_ACTIONS)(chance, known) for _ in range(count)]
    if any(action.startswith("CONVERT") for action in actions):
        # MySQL 8.0.15 crashes when a text is added and converted in one statement, and sizes one
        # that is redefined by its old type.
        words = ("ADD", "MODIFY", "CHANGE")
        actions = [action for action in actions if not action.startswith(words)]
        actions = [action for action in actions if ", ADD" not in action] or ["FORCE"]
    dropped = set(re.findall(r"DROP (`[^`]+`)", " ".join(actions)))
    actions = [
        a for a in actions if not (dropped & set(re.findall(r"(?:MODIFY|CHANGE) (`[^`]+`)", a)))
    ]
    return f"ALTER TABLE {name} {', '.join(actions)}"


def statement(chance: Random, known: Mapping[str, Known]) -> str:
    """Any statement on one of the tables; ``known`` holds those that exist."""
    missing = [name for name in TABLES if name not in known]
    if missing:
        return create_table(chance, missing[0])
    name, other = chance.choice(TABLES), chance.choice(TABLES)
    number = chance.random()
    if number < 0.03:
        return f"DROP TABLE IF EXISTS {name}"
    if number < 0.06:
        return f"RENAME TABLE {name} TO swap, {other} TO {name}, swap TO {other}"
    if number < 0.07:
        return f"CREATE TABLE IF NOT EXISTS {name} LIKE {other}"
    if number < 0.12:
        unique = chance.choice(("", "UNIQUE "))
        parts = _part(chance, known[name].columns)
        return f"CREATE {unique}INDEX {_index_name(chance)} ON {name} ({parts})"
    return alter_table(chance, name, known[name])


def definition(chance: Random) -> str:
    """A column's type and attributes."""
    text, default = chance.choice(_TYPES)(chance)
    if chance.random() < 0.08 and text.startswith(("INT", "BIGINT")):
        value = chance.choice(("1 + 1", "`a` + 1", "ABS(`b`)"))
        return f"{text} AS ({value}) {chance.choice(('', 'VIRTUAL', 'STORED'))}"
    if chance.random() < 0.35:
        text += " NOT NULL"
    elif chance.random() < 0.2:
        text += " NULL"
    if default and chance.random() < 0.45:
        text += f" DEFAULT {default}"
    elif "NOT NULL" not in text and chance.random() < 0.1:
        text += " DEFAULT NULL"
    if chance.random() < 0.05:
        text += chance.choice((" UNIQUE", " PRIMARY KEY", " UNIQUE KEY"))
    if chance.random() < 0.1:
        text += " COMMENT 'it''s'"
    return text


# Types, each with a default that suits it, "" for those that take none.


def _integer(chance: Random) -> tuple[str, str]:
    name = chance.choice(_INTEGERS)
    sign = "" if name == "BOOL" else chance.choice(("", "", " UNSIGNED", " ZEROFILL"))
    return name + sign, chance.choice(("0", "5", "'7'", "0x10", "+1", "b'11'"))


def _decimal(chance: Random) -> tuple[str, str]:
    name = chance.choice(("DECIMAL", "NUMERIC", "DEC"))
    size = f"({chance.randint(4, 20)},{chance.randint(0, 3)})"
    return name + size, chance.choice(("0", "1.5", "'2.25'", ".5"))


def _floating(chance: Random) -> tuple[str, str]:
    name = chance.choice(("FLOAT", "DOUBLE", "REAL", "FLOAT(30)", "DOUBLE(9,3)"))
    return name, chance.choice(("0", "1.5", "1e2", "'3'"))


def _bit(chance: Random) -> tuple[str, str]:
    return f"BIT({chance.randint(1, 16)})", chance.choice(("b'1'", "1", "0x01"))


def _string(chance: Random) -> tuple[str, str]:
    name = chance.choice(("CHAR", "VARCHAR", "VARCHAR", "NVARCHAR"))
    length = chance.choice((1, 5, 20, 255) if name == "CHAR" else (1, 5, 20, 255, 300, 900))
    charset = "" if name == "NVARCHAR" else _charset(chance)
    return f"{name}({length}){charset}", chance.choice(("''", "'x'", "'5'", "0x61", "'a '"))


def _text(chance: Random) -> tuple[str, str]:
    name = chance.choice(("TINYTEXT", "TEXT", "MEDIUMTEXT", "TEXT(50)", "TEXT(9000)"))
    return name + _charset(chance), ""


def _binary(chance: Random) -> tuple[str, str]:
    return chance.choice(
        (
            ("BINARY(3)", "'ab'"),
            ("BINARY(3)", "0x410042"),
            ("VARBINARY(20)", "x'6162'"),
            ("VARBINARY(20)", "'it''s'"),
            ("BLOB", ""),
            ("TINYBLOB", ""),
            ("BLOB(90)", ""),
        )
    )


def _moment(chance: Random) -> tuple[str, str]:
    fsp = chance.choice(("", "", "(3)", "(6)"))
    now = f"NOW{fsp or '()'}"
    value = chance.choice(
        (f"CURRENT_TIMESTAMP{fsp}", "'2020-01-02 03:04:05'", f"{now} ON UPDATE {now}")
    )
    null = " NULL" if chance.random() < 0.3 else ""
    return chance.choice(("DATETIME", "TIMESTAMP")) + fsp + null, value


def _date(chance: Random) -> tuple[str, str]:
    return chance.choice(
        (
            ("DATE", "'2020-2-9'"),
            ("DATE", "20200209"),
            ("TIME(2)", "'5'"),
            ("TIME", "'10:11'"),
            ("TIME", "-101112"),
            ("YEAR", "'99'"),
            ("YEAR", "5"),
        )
    )


def _enumeration(chance: Random) -> tuple[str, str]:
    name = chance.choice(("ENUM", "SET"))
    return f"{name}('u','v','w''x')" + _charset(chance), chance.choice(("'v'", "'U'", "'w''x'"))


def _json(chance: Random) -> tuple[str, str]:
    return "JSON", ""


_TYPES = (
    _integer, _integer, _integer, _decimal, _floating, _bit, _string, _string, _string, _text,
    _binary, _moment, _date, _enumeration, _json,
)  # fmt: skip


def _charset(chance: Random) -> str:
    number = chance.random()
    if number < 0.2:
        return f" CHARACTER SET {chance.choice(_CHARSETS[:4])}"
    if number < 0.3:
        return f" COLLATE {chance.choice(_COLLATIONS)}"
    return " BINARY" if number < 0.35 else ""


def _part(chance: Random, columns: Sequence[str]) -> str:
    names = list(columns or _COLUMNS)
    count = 1 if chance.random() < 0.6 else 2
    parts = []
    for column in chance.sample(names, min(count, len(names))):
        length = f"({chance.choice((1, 4, 5, 20))})" if chance.random() < 0.3 else ""
        parts.append(f"`{column}`{length}" + chance.choice(("", "", " DESC")))
    return ", ".join(parts)


def _index_name(chance: Random) -> str:
    return "`" + chance.choice(_INDEXES) + "`"


def index(chance: Random, columns: Sequence[str]) -> str:
    """An index definition."""
    kind = chance.choice(("KEY", "INDEX", "UNIQUE", "UNIQUE KEY"))
    name = _index_name(chance) if chance.random() < 0.6 else ""
    return f"{kind} {name} ({_part(chance, columns)})"


def _place(chance: Random, known: Known) -> str:
    number = chance.random()
    if number < 0.2:
        return " FIRST"
    return f" AFTER `{known.column(chance)}`" if number < 0.5 else ""


# Actions of ALTER TABLE.


def _add(chance: Random, known: Known) -> str:
    return f"ADD COLUMN `{known.fresh(chance)}` {definition(chance)}{_place(chance, known)}"


def _drop(chance: Random, known: Known) -> str:
    return f"DROP `{known.column(chance)}`"


def _replace(chance: Random, known: Known) -> str:
    column = known.column(chance)
    return f"DROP `{column}`, ADD `{column}` {definition(chance)}{_place(chance, known)}"


def _modify(chance: Random, known: Known) -> str:
    return f"MODIFY `{known.column(chance)}` {definition(chance)}{_place(chance, known)}"


def _change(chance: Random, known: Known) -> str:
    names = f"`{known.column(chance)}` `{known.fresh(chance)}`"
    return f"CHANGE {names} {definition(chance)}{_place(chance, known)}"


def _rename(chance: Random, known: Known) -> str:
    return f"RENAME COLUMN `{known.column(chance)}` TO `{known.fresh(chance)}`"


def _default(chance: Random, known: Known) -> str:
    value = chance.choice(("5", "'x'", "NULL", "''", "0"))
    what = chance.choice(("DROP DEFAULT", f"SET DEFAULT {value}"))
    return f"ALTER `{known.column(chance)}` {what}"


def _add_index(chance: Random, known: Known) -> str:
    return f"ADD {index(chance, known.columns)}"


def _drop_index(chance: Random, known: Known) -> str:
    return f"DROP INDEX {known.index(chance)}"


def _rename_index(chance: Random, known: Known) -> str:
    return f"RENAME INDEX {known.index(chance)} TO {_index_name(chance)}"


def _primary(chance: Random, known: Known) -> str:
    if "PRIMARY" in known.indexes:
        return "DROP PRIMARY KEY"
    return f"ADD PRIMARY KEY ({_part(chance, known.columns)})"


def _charset_of_table(chance: Random, known: Known) -> str:
    return chance.choice(
        (
            f"DEFAULT CHARACTER SET {chance.choice(_CHARSETS)}",
            f"COLLATE {chance.choice(_COLLATIONS)}",
            f"CONVERT TO CHARACTER SET {chance.choice(_CHARSETS)}",
            "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        )
    )


def _option(chance: Random, known: Known) -> str:
    return chance.choice(("ENGINE=InnoDB", "COMMENT='x'", "FORCE", "ROW_FORMAT=DYNAMIC"))


_ACTIONS = (
    _add, _add, _add, _add, _drop, _replace, _modify, _modify, _modify, _change, _change, _rename,
    _default, _add_index, _add_index, _drop_index, _rename_index, _primary, _charset_of_table,
    _option,
)  # fmt: skip
