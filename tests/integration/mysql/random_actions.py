"""Random actions of ALTER TABLE."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from shardmerge.schemas.model.tables import IndexKind, TableSchema
from shardmerge.schemas.model.types import SPATIAL_NAMES

from . import random_definitions as definitions
from .random_types import COLUMNS, Dialect, charset_name, quoted, table_charset


@dataclass(frozen=True, slots=True)
class Subject:
    """A table as it is, and the means to choose something of it."""

    chance: Random
    dialect: Dialect
    schema: TableSchema

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.schema.columns]

    def column(self) -> str:
        """A column that most probably exists."""
        return quoted(self.chance.choice(self.names if self.chance.random() < 0.97 else COLUMNS))

    def fresh(self) -> str:
        """A name for a column that most probably does not exist."""
        taken = {name.lower() for name in self.names}
        free = [name for name in COLUMNS if name.lower() not in taken]
        sure = free and self.chance.random() < 0.97
        return quoted(self.chance.choice(free if sure else COLUMNS))

    def index(self) -> str:
        """An index that most probably exists."""
        names = [i.name for i in self.schema.indexes if i.kind is not IndexKind.PRIMARY]
        return quoted(self.chance.choice(names)) if names else definitions.index_name(self.chance)

    def definition(self) -> str:
        return definitions.column(self.chance, self.dialect, self.schema.columns)

    def place(self) -> str:
        number = self.chance.random()
        if number < 0.2:
            return " FIRST"
        return f" AFTER {self.column()}" if number < 0.5 else ""

    def guard(self, words: str) -> str:
        """IF EXISTS and IF NOT EXISTS, where the server has them."""
        return f"{words} " if self.dialect.is_mariadb and self.chance.random() < 0.15 else ""


_NAME = r"`(?:[^`]|``)+`"


def actions(subject: Subject) -> list[str]:
    """One or a few actions that mostly go together."""
    chance = subject.chance
    if subject.schema.partitioning and chance.random() < 0.3:
        return [_partitions(subject)]
    count = 1 if chance.random() < 0.5 else chance.randint(2, 5)
    chosen = [
        action for action in (chance.choice(_ACTIONS)(subject) for _ in range(count)) if action
    ]
    if any(action.startswith("CONVERT") for action in chosen) and not subject.dialect.is_mariadb:
        # MySQL 8.0.15 crashes when a text is added and converted in one statement, and sizes one
        # that is redefined by its old type; 9.7 loses the elements of a set with SET DEFAULT.
        words = ("ADD", "MODIFY", "CHANGE", "ALTER")
        chosen = [action for action in chosen if not action.startswith(words)]
        chosen = [action for action in chosen if ", ADD" not in action]
    chosen = _apart(subject, chosen)
    if chance.random() < 0.05:
        chosen.append(chance.choice(("ALGORITHM=COPY", "LOCK=DEFAULT", "ALGORITHM=DEFAULT")))
    return chosen or ["FORCE"]


def _apart(subject: Subject, chosen: list[str]) -> list[str]:
    """Without actions whose effect on a column another one undoes, or that spoil expressions."""
    dropped = set(re.findall(rf"DROP (?:COLUMN )?({_NAME})", " ".join(chosen)))
    added_names = re.findall(rf"(?:ADD|ADD COLUMN|EXISTS|\(|,) ?({_NAME}) [A-Z]", " ".join(chosen))
    added = " ".join(action for action in chosen if "(" in action)
    expressions = [
        *(check.expression for check in subject.schema.checks),
        *(c.generated.expression for c in subject.schema.columns if c.generated is not None),
        *(part.expression for index in subject.schema.indexes for part in index.parts),
    ]
    kept = []
    for action in chosen:
        changed = re.match(rf"(?:MODIFY|CHANGE|ALTER)(?: COLUMN| IF EXISTS)? ({_NAME})", action)
        replaced = re.match(rf"DROP COLUMN ({_NAME}), ADD", action)
        if changed and changed[1] in dropped:
            continue
        renamed = re.match(rf"RENAME COLUMN ({_NAME}) TO ({_NAME})", action)
        if renamed and any(name in added for name in renamed.groups()):
            continue
        # MySQL 8.0.15 keeps the text of an expression, which then means the other column.
        mysql = not subject.dialect.is_mariadb
        if renamed and mysql and any(n in text for n in renamed.groups() for text in expressions):
            continue
        moved = renamed or re.match(rf"CHANGE ({_NAME}) ({_NAME})", action)
        # MariaDB gives a new name that is added in the same statement to the added column.
        if moved and moved[2] in added_names:
            continue
        if moved and moved[1] != moved[2] and _loses_foreign_key(subject, *moved.groups()):
            continue
        if changed and action[0] == "A" and " ".join(chosen).count(changed[1]) > 1:
            continue
        # Servers write the literals of an expression anew when a column of it is redefined.
        name = found[1] if (found := changed or replaced) and action[0] != "A" else ""
        others = added.replace(action, "")
        if name and _makes_indexed_shape(subject, name, action):
            continue
        if name and (any(name in text for text in expressions) or name in others):
            continue
        kept.append(action)
    return kept


def _loses_foreign_key(subject: Subject, name: str, to: str) -> bool:
    """Whether two columns would swap names under a foreign key: MariaDB then forgets the key."""
    named = {quoted(own) for key in subject.schema.foreign_keys for own in key.columns}
    swaps = to in map(quoted, subject.names)
    return subject.dialect.is_mariadb and swaps and not named.isdisjoint((name, to))


def _makes_indexed_shape(subject: Subject, name: str, action: str) -> bool:
    """Whether MariaDB would have an indexed column become a shape, or cease to be one.

    It then forgets what the index has of the column, until the table is made anew.
    """
    if not subject.dialect.is_mariadb:
        return False
    indexed = any(name == quoted(own) for i in subject.schema.indexes for own in i.columns)
    is_shape = any(
        quoted(c.name) == name and c.type.name in SPATIAL_NAMES for c in subject.schema.columns
    )
    return indexed and (is_shape or any(kind.upper() in action for kind in SPATIAL_NAMES))


def _add(subject: Subject) -> str:
    word = subject.chance.choice(("ADD COLUMN", "ADD")) + " "
    definition = subject.definition()
    # MariaDB adds the keys of a definition although the column is there already.
    has_key = "KEY" in definition or "UNIQUE" in definition
    guard = "" if has_key else subject.guard("IF NOT EXISTS")
    return f"{word}{guard}{subject.fresh()} {definition}{subject.place()}"


def _add_several(subject: Subject) -> str:
    first, second = subject.fresh(), subject.fresh()
    parts = [f"{name} {subject.definition()}" for name in {first, second}]
    return f"ADD COLUMN ({', '.join(parts)})"


def _drop(subject: Subject) -> str:
    return f"DROP {subject.guard('IF EXISTS')}{subject.column()}"


def _replace(subject: Subject) -> str:
    column = subject.column()
    return f"DROP COLUMN {column}, ADD COLUMN {column} {subject.definition()}{subject.place()}"


def _modify(subject: Subject) -> str:
    definition = subject.definition()
    # MariaDB lets an existing primary key stand when IF EXISTS is said.
    guard = "" if "KEY" in definition else subject.guard("IF EXISTS")
    return f"MODIFY {guard}{subject.column()} {definition}{subject.place()}"


def _change(subject: Subject) -> str:
    new = subject.fresh() if subject.chance.random() < 0.7 else subject.column()
    old = quoted(subject.chance.choice(subject.names))
    return f"CHANGE {old} {new} {subject.definition()}{subject.place()}"


def _rename(subject: Subject) -> str:
    if not subject.dialect.renames_columns:
        return ""
    return f"RENAME COLUMN {subject.column()} TO {subject.fresh()}"


def _swap(subject: Subject) -> str:
    if not subject.dialect.renames_columns or len(subject.names) < 2:
        return ""
    one, two = map(quoted, subject.chance.sample(subject.names, 2))
    return f"RENAME COLUMN {one} TO {two}, RENAME COLUMN {two} TO {one}"


def _default(subject: Subject) -> str:
    values = ["5", "'x'", "NULL", "''", "0", "1.5", "'2020-01-02'"]
    if subject.dialect.expression_defaults and subject.dialect.has((8, 0, 13), (10, 2)):
        values.append("(1 + 2)")
    # A column that exists: MariaDB takes one that the same statement adds, too.
    column = subject.chance.choice(subject.schema.columns)
    if column.type.name == "decimal" and not subject.dialect.has((8, 0, 16), (0,)):
        # MySQL 8.0.15 refuses a text that is no number, and has 0 for the default from then on.
        values = [value for value in values if "'" not in value]
    value = subject.chance.choice(values)
    what = subject.chance.choice(("DROP DEFAULT", f"SET DEFAULT {value}"))
    return f"ALTER {subject.chance.choice(('', 'COLUMN '))}{quoted(column.name)} {what}"


def _column_visibility(subject: Subject) -> str:
    if not subject.dialect.has((8, 0, 23), None):
        return ""
    return f"ALTER COLUMN {subject.column()} SET {subject.chance.choice(('VISIBLE', 'INVISIBLE'))}"


def _add_index(subject: Subject) -> str:
    return f"ADD {definitions.index(subject.chance, subject.dialect, subject.schema.columns)}"


def _drop_index(subject: Subject) -> str:
    word = subject.chance.choice(("INDEX", "KEY"))
    return f"DROP {word} {subject.guard('IF EXISTS')}{subject.index()}"


def _rename_index(subject: Subject) -> str:
    if not subject.dialect.has((5, 7), (10, 5, 2)):
        return ""
    return f"RENAME INDEX {subject.index()} TO {definitions.index_name(subject.chance)}"


def _swap_indexes(subject: Subject) -> str:
    names = [i.name for i in subject.schema.indexes if i.kind is not IndexKind.PRIMARY]
    if not subject.dialect.has((5, 7), (10, 5, 2)) or len(names) < 2:
        return ""
    one, two = map(quoted, subject.chance.sample(names, 2))
    return f"RENAME INDEX {one} TO {two}, RENAME KEY {two} TO {one}"


def _index_visibility(subject: Subject) -> str:
    if not subject.dialect.has((8,), (10, 6)):
        return ""
    words = ("IGNORED", "NOT IGNORED") if subject.dialect.is_mariadb else ("VISIBLE", "INVISIBLE")
    return f"ALTER INDEX {subject.index()} {subject.chance.choice(words)}"


def _primary(subject: Subject) -> str:
    parts = definitions.parts(subject.chance, subject.dialect, subject.schema.columns)
    key = subject.schema.primary_key
    if key is None:
        return f"ADD PRIMARY KEY ({parts})"
    heads = [foreign.columns[:1] for foreign in subject.schema.foreign_keys]
    if subject.dialect.is_mariadb and key.columns[:1] in heads:
        # Without it MariaDB forgets the foreign key when it next opens the table.
        return ""
    again = f", ADD PRIMARY KEY ({parts})" if subject.chance.random() < 0.5 else ""
    return f"DROP PRIMARY KEY{again}"


def _add_check(subject: Subject) -> str:
    text = definitions.check(subject.chance, subject.dialect, subject.schema.columns)
    return f"ADD {text}" if text else ""


def _drop_check(subject: Subject) -> str:
    # A column's own check has the column's name on MariaDB, and is not dropped by it.
    names = [c.name for c in subject.schema.checks if subject.schema.column(c.name) is None]
    if not names:
        return ""
    name = quoted(subject.chance.choice(names))
    if subject.dialect.is_mariadb or subject.dialect.has((8, 0, 19), None):
        return f"DROP CONSTRAINT {name}"
    return f"DROP CHECK {name}"


def _enforce_check(subject: Subject) -> str:
    if not subject.schema.checks or not subject.dialect.has((8, 0, 16), None):
        return ""
    name = quoted(subject.chance.choice(subject.schema.checks).name)
    return f"ALTER CHECK {name} {subject.chance.choice(('ENFORCED', 'NOT ENFORCED'))}"


def _add_foreign_key(subject: Subject) -> str:
    text = definitions.foreign_key(subject.chance, subject.schema.columns)
    return f"ADD {text}" if text else ""


def _drop_foreign_key(subject: Subject) -> str:
    if not subject.schema.foreign_keys:
        return ""
    name = subject.chance.choice(subject.schema.foreign_keys).name
    return f"DROP FOREIGN KEY {subject.guard('IF EXISTS')}{quoted(name)}"


def _charset(subject: Subject) -> str:
    computed = bool(subject.schema.checks) or any(c.generated for c in subject.schema.columns)
    # MariaDB then writes its own conversions into expressions.
    spoils = computed and subject.dialect.is_mariadb
    if spoils or any(column.type.elements for column in subject.schema.columns):
        # Both flavours spoil an ENUM when it is converted from or to a charset of wide characters.
        return f"COLLATE {subject.chance.choice(subject.dialect.collations)}"
    return subject.chance.choice(
        (
            f"DEFAULT CHARACTER SET {charset_name(subject.chance)}",
            f"CHARSET = {charset_name(subject.chance)}",
            f"COLLATE {subject.chance.choice(subject.dialect.collations)}",
            table_charset(subject.chance, subject.dialect),
            "CONVERT TO CHARACTER SET DEFAULT",
            f"CONVERT TO CHARACTER SET {charset_name(subject.chance)}",
            "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        )
    )


def _option(subject: Subject) -> str:
    return subject.chance.choice(
        (
            "ENGINE=InnoDB", "COMMENT='x'", "FORCE", "ROW_FORMAT=DYNAMIC", "AUTO_INCREMENT=7",
            f"ORDER BY {subject.column()}", "DISABLE KEYS", "STATS_PERSISTENT=1",
        )
    )  # fmt: skip


def _partitions(subject: Subject) -> str:
    return subject.chance.choice(
        (
            "REMOVE PARTITIONING", "ADD PARTITION PARTITIONS 1", "COALESCE PARTITION 1",
            "ADD PARTITION (PARTITION p9 VALUES LESS THAN (900))", "DROP PARTITION p0",
            "TRUNCATE PARTITION p0", "REBUILD PARTITION ALL",
            "REORGANIZE PARTITION p0 INTO (PARTITION p2 VALUES LESS THAN (3),"
            " PARTITION p3 VALUES LESS THAN (10))",
        )
    )  # fmt: skip


_ACTIONS: tuple[Callable[[Subject], str], ...] = (
    _add, _add, _add, _add, _add_several, _drop, _drop, _replace, _modify, _modify, _modify,
    _change, _change, _rename, _rename, _swap, _default, _default, _column_visibility, _add_index,
    _add_index, _add_index, _drop_index, _rename_index, _swap_indexes, _index_visibility, _primary,
    _add_check,
    _add_check, _drop_check, _enforce_check, _add_foreign_key, _drop_foreign_key, _charset,
    _option,
)  # fmt: skip
