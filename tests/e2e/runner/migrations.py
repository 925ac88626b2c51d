"""Random migrations of a table: what a team could decide to do to all of its shards. Pure."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

INTEGERS = ("tinyint", "smallint", "int", "bigint", "int unsigned")
TEXTS = ("varchar(8)", "varchar(20)", "varchar(60)", "char(12)", "text")
NUMBERS = ("decimal(8,2)", "decimal(14,4)", "double")
CHOICES = ("enum('p','q')", "enum('p','q','r')")
MOMENTS = ("date", "datetime", "datetime(3)")
HIGHEST = dict(
    zip(INTEGERS, (99, 32_000, 2_000_000_000, 9_000_000_000, 4_000_000_000), strict=True)
)
"""Values that an integer type gets."""
FAMILIES = (INTEGERS, TEXTS, NUMBERS, CHOICES, MOMENTS)
WIDER = {INTEGERS: (NUMBERS, TEXTS), NUMBERS: (TEXTS,), CHOICES: (TEXTS,)}
"""Families that take every value of another."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the model; ``default`` is an SQL literal, ``base`` the column it is made of."""

    name: str
    type: str
    null: bool = True
    default: str = ""
    base: str = ""

    def definition(self) -> str:
        """As ADD COLUMN and CREATE TABLE say it."""
        if self.base:
            return f"{self.name} {self.type} as ({self.base} + 1) stored"
        default = f" default {self.default}" if self.default else ""
        return f"{self.name} {self.type}{'' if self.null else ' not null'}{default}"

    def family(self) -> tuple[str, ...]:
        """The types that its own can simply become."""
        return next(family for family in FAMILIES if self.type in family)


@dataclass(frozen=True, slots=True)
class Migration:
    """One ALTER TABLE: its actions, and what they make of the model.

    Attributes:
        before: Statements, with ``{table}``, that make the rows fit first.
        touched: Columns and indexes it is about; two that share none may change places.
    """

    actions: tuple[str, ...]
    touched: frozenset[str]
    gone: frozenset[str] = frozenset()
    put: tuple[Column, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    indexes: tuple[tuple[str, str], ...] = ()
    unindexed: frozenset[str] = frozenset()
    before: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    charset: str = ""

    def sql(self, table: str) -> str:
        """The statement."""
        return f"alter table {table} {', '.join(self.actions)}"


@dataclass(frozen=True, slots=True)
class Model:
    """A shard's schema, as far as the rollouts change it; ``id`` is always part of the key."""

    columns: Mapping[str, Column]
    indexes: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ("id",)
    charset: str = ""

    def after(self, migration: Migration) -> Model:
        """The schema behind a migration."""
        names = dict(migration.renamed)
        columns = {
            names.get(name, name): dataclasses.replace(column, name=names.get(name, name))
            for name, column in self.columns.items()
            if name not in migration.gone
        }
        columns |= {column.name: column for column in migration.put}
        indexes = {
            name: names.get(column, column)
            for name, column in self.indexes.items()
            if name not in migration.unindexed
        }
        key = migration.key or self.key
        charset = migration.charset or self.charset
        return Model(columns, indexes | dict(migration.indexes), key, charset)

    def create(self, table: str) -> str:
        """The statement that makes a shard with it."""
        parts = ["id int not null"]
        parts += [column.definition() for column in self.columns.values()]
        parts += [f"primary key ({', '.join(self.key)})"]
        parts += [f"key {name} ({column})" for name, column in self.indexes.items()]
        charset = f" default charset {self.charset}" if self.charset else ""
        return f"create table {table} ({', '.join(parts)}){charset}"

    def free(self, taken: Iterable[str] = ()) -> list[Column]:
        """Columns that may be dropped, renamed or changed."""
        used = {c.base for c in self.columns.values()} | set(self.indexes.values()) | set(taken)
        used |= set(self.key)
        return [c for c in self.columns.values() if not c.base and c.name not in used]


class Migrations:
    """Makes migrations of a model from a source of randomness."""

    def __init__(self, random: Random, taken: set[str]) -> None:
        self._random = random
        self._taken = taken
        self._names = (f"n{number}" for number in itertools.count(1))
        self._any_text = self._no_text = False

    def migration(self, model: Model, apart: bool) -> Migration:
        """A migration of the model; one that is ``apart`` touches nothing an earlier one did."""
        kinds: tuple[Callable[[Model], Migration | None], ...] = (
            self._add, self._add, self._add_two, self._drop, self._rename, self._rename,
            self._modify, self._modify, self._convert, self._nullability, self._default,
            self._move, self._add_index, self._drop_index, self._add_generated, self._replace,
            self._drop_and_add, self._rename_index, self._widen_key, self._convert_charset,
        )  # fmt: skip
        while True:
            found = self._random.choice(kinds)(model)
            if found is not None and not (apart and found.touched & self._taken):
                self._taken |= found.touched
                return found

    def new_column(self, name: str) -> Column:
        """A column with some type, nullability and default."""
        type_ = self._type(self._random.choice(FAMILIES))
        null = self._random.random() < 0.6
        default = literal(self._random, type_) if self._random.random() < 0.5 else ""
        # MySQL has no default for TEXT, and strict mode no zero date for the rows that are there.
        if type_ == "text":
            null, default = True, ""
        return Column(name, type_, null or (type_ in MOMENTS and not default), default)

    def _type(self, family: tuple[str, ...]) -> str:
        found = self._random.choice([t for t in family if not (self._no_text and t == "text")])
        self._any_text |= found == "text"
        return found

    def _place(self, model: Model) -> str:
        if self._random.random() < 0.6:
            return ""
        names = [c.name for c in model.free(self._taken)]
        if names and self._random.random() < 0.7:
            return f" after {self._random.choice(names)}"
        return " first"

    def _add(self, model: Model) -> Migration:
        column = self.new_column(next(self._names))
        place = self._place(model)
        touched = {column.name} | ({place.removeprefix(" after ")} if "after" in place else set())
        return Migration(
            (f"add column {column.definition()}{place}",), frozenset(touched), put=(column,)
        )

    def _add_two(self, model: Model) -> Migration:
        one, two = self.new_column(next(self._names)), self.new_column(next(self._names))
        actions = (
            f"add column {one.definition()}",
            f"add column {two.definition()} after {one.name}",
        )
        return Migration(actions, frozenset((one.name, two.name)), put=(one, two))

    def _one(self, model: Model) -> Column | None:
        columns = model.free()
        return self._random.choice(columns) if columns else None

    def _drop(self, model: Model) -> Migration | None:
        column = self._one(model)
        if column is None or len(model.columns) < 3:
            return None
        names = frozenset((column.name,))
        return Migration((f"drop column {column.name}",), names, gone=names)

    def _rename(self, model: Model) -> Migration | None:
        column = self._one(model)
        if column is None:
            return None
        name = next(self._names)
        action = f"rename column {column.name} to {name}"
        if self._random.random() < 0.5:
            new = dataclasses.replace(column, name=name)
            action = f"change column {column.name} {new.definition()}"
        return Migration((action,), frozenset((column.name, name)), renamed=((column.name, name),))

    def _changed(self, column: Column, before: tuple[str, ...] = (), place: str = "") -> Migration:
        action = f"modify column {column.definition()}{place}"
        return Migration((action,), frozenset((column.name,)), put=(column,), before=before)

    def _modify(self, model: Model) -> Migration | None:
        column = self._one(model)
        if column is None or column.type in CHOICES:
            return None
        type_ = self._type(column.family())
        if type_ == column.type:
            return None
        before: tuple[str, ...] = ()
        if type_ in INTEGERS:
            value = f"{column.name} % {HIGHEST[type_]}"
            before = (f"update {{table}} set {column.name} = {value}",)
        return self._changed(_of_type(column, type_), before)

    def _convert(self, model: Model) -> Migration | None:
        column = self._one(model)
        families = WIDER.get(column.family(), ()) if column else ()
        if column is None or not families:
            return None
        before: tuple[str, ...] = ()
        if column.type in INTEGERS:
            before = (f"update {{table}} set {column.name} = {column.name} % 9999",)
        return self._changed(_of_type(column, self._type(self._random.choice(families))), before)

    def _nullability(self, model: Model) -> Migration | None:
        column = self._one(model)
        if column is None:
            return None
        value = literal(self._random, column.type)
        before = (f"update {{table}} set {column.name} = {value} where {column.name} is null",)
        return self._changed(
            dataclasses.replace(column, null=not column.null), before if column.null else ()
        )

    def _default(self, model: Model) -> Migration | None:
        column = self._one(model)
        if column is None or column.type == "text":
            return None
        default = "" if column.default else literal(self._random, column.type)
        action = f"alter column {column.name} " + (
            f"set default {default}" if default else "drop default"
        )
        new = dataclasses.replace(column, default=default)
        if not default:
            # DROP DEFAULT leaves a nullable column without one, which no MODIFY can say.
            return self._changed(new)
        return Migration((action,), frozenset((column.name,)), put=(new,))

    def _move(self, model: Model) -> Migration | None:
        column = self._one(model)
        return None if column is None else self._changed(column, place=" first")

    def _add_index(self, model: Model) -> Migration | None:
        columns = [c for c in model.free() if c.type != "text"]
        if not columns:
            return None
        column, name = self._random.choice(columns), f"k_{next(self._names)}"
        action = f"add index {name} ({column.name})"
        return Migration((action,), frozenset((column.name, name)), indexes=((name, column.name),))

    def _drop_index(self, model: Model) -> Migration | None:
        if not model.indexes:
            return None
        name, column = self._random.choice(sorted(model.indexes.items()))
        return Migration(
            (f"drop index {name}",), frozenset((name, column)), unindexed=frozenset((name,))
        )

    def _rename_index(self, model: Model) -> Migration | None:
        if not model.indexes:
            return None
        name, column = self._random.choice(sorted(model.indexes.items()))
        new = f"k_{next(self._names)}"
        return Migration(
            (f"rename index {name} to {new}",),
            frozenset((name, new, column)),
            indexes=((new, column),),
            unindexed=frozenset((name,)),
        )

    def _widen_key(self, model: Model) -> Migration | None:
        """Another column becomes part of the primary key, or the last one leaves it."""
        columns = [c for c in model.free() if c.type in INTEGERS and not c.null]
        if len(model.key) > 1:
            key = model.key[:-1]
        elif columns:
            key = (*model.key, self._random.choice(columns).name)
        else:
            return None
        touched = frozenset(("primary key", *model.key[1:], *key[1:]))
        action = f"drop primary key, add primary key ({', '.join(key)})"
        return Migration((action,), touched, key=key)

    def _convert_charset(self, model: Model) -> Migration | None:
        """All texts become utf8mb4: a longer type would take the place of TEXT."""
        if self._any_text or any(c.type == "text" for c in model.columns.values()):
            return None
        self._no_text = True
        return Migration(
            ("convert to character set utf8mb4 collate utf8mb4_bin",),
            frozenset(("charset", *model.columns)),
            charset="utf8mb4 collate utf8mb4_bin",
        )

    def _add_generated(self, model: Model) -> Migration | None:
        columns = [c for c in model.free() if c.type in ("tinyint", "smallint", "int")]
        if not columns:
            return None
        base, name = self._random.choice(columns), next(self._names)
        column = Column(name, "bigint", base=base.name)
        return Migration(
            (f"add column {column.definition()}",), frozenset((base.name, name)), put=(column,)
        )

    def _replace(self, model: Model) -> Migration | None:
        """Drop one column and add another in one statement."""
        column = self._one(model)
        if column is None:
            return None
        new = self.new_column(next(self._names))
        actions = (f"drop column {column.name}", f"add column {new.definition()}")
        names = frozenset((column.name, new.name))
        return Migration(actions, names, gone=frozenset((column.name,)), put=(new,))

    def _drop_and_add(self, model: Model) -> Migration | None:
        """Drop a column and add one of its name: its values must not come back."""
        column = self._one(model)
        if column is None:
            return None
        new = self.new_column(column.name)
        actions = (f"drop column {column.name}", f"add column {new.definition()}")
        return Migration(actions, frozenset((column.name,)), put=(new,))


def literal(random: Random, type_: str) -> str:
    """A value of a type, as SQL writes it; every text is that of a number."""
    if type_ in CHOICES:
        return random.choice(("'p'", "'q'"))
    if type_ in MOMENTS:
        return f"'2026-0{random.randint(1, 9)}-1{random.randint(0, 9)}'"
    if type_ in NUMBERS:
        return f"{random.randint(0, 99)}.{random.choice(('5', '25', '0'))}"
    if type_ in TEXTS:
        return f"'{random.randint(0, 9999999)}'"
    return str(random.randint(0, HIGHEST[type_]))


def _of_type(column: Column, type_: str) -> Column:
    """The column with another type, and a default that it takes as written."""
    return dataclasses.replace(column, type=type_, default="", null=column.null or type_ == "text")
