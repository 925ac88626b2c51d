"""Random rollouts: what a team could do to its shards, from a seed. Pure.

All shards go the same way from one schema to another, each at its own time; some go it in another
order, make a mistake and take it back, begin further on, or come to be in the middle. Rows are
written all the while. At the end the shards have one schema, so the target must have it too, and
the union of their rows.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

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

    def sql(self, table: str) -> str:
        """The statement."""
        return f"alter table {table} {', '.join(self.actions)}"


@dataclass(frozen=True, slots=True)
class Model:
    """A shard's schema, as far as the rollouts change it; ``id`` is always the primary key."""

    columns: Mapping[str, Column]
    indexes: Mapping[str, str] = field(default_factory=dict)

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
        return Model(columns, indexes | dict(migration.indexes))

    def create(self, table: str) -> str:
        """The statement that makes a shard with it."""
        parts = ["id int primary key"]
        parts += [column.definition() for column in self.columns.values()]
        parts += [f"key {name} ({column})" for name, column in self.indexes.items()]
        return f"create table {table} ({', '.join(parts)})"

    def free(self, taken: Iterable[str] = ()) -> list[Column]:
        """Columns that may be dropped, renamed or changed."""
        used = {c.base for c in self.columns.values()} | set(self.indexes.values()) | set(taken)
        return [c for c in self.columns.values() if not c.base and c.name not in used]


class _Writer:
    """Makes migrations of a model from a source of randomness."""

    def __init__(self, random: Random, taken: set[str]) -> None:
        self._random = random
        self._taken = taken
        self._names = (f"n{number}" for number in itertools.count(1))

    def migration(self, model: Model, apart: bool) -> Migration:
        """A migration of the model; one that is ``apart`` touches nothing an earlier one did."""
        kinds: tuple[Callable[[Model], Migration | None], ...] = (
            self._add, self._add, self._add_two, self._drop, self._rename, self._rename,
            self._modify, self._modify, self._convert, self._nullability, self._default,
            self._move, self._add_index, self._drop_index, self._add_generated, self._replace,
            self._drop_and_add,
        )  # fmt: skip
        while True:
            found = self._random.choice(kinds)(model)
            if found is not None and not (apart and found.touched & self._taken):
                self._taken |= found.touched
                return found

    def new_column(self, name: str) -> Column:
        """A column with some type, nullability and default."""
        type_ = self._random.choice(self._random.choice(FAMILIES))
        null = self._random.random() < 0.6
        default = literal(self._random, type_) if self._random.random() < 0.5 else ""
        # MySQL has no default for TEXT, and strict mode no zero date for the rows that are there.
        if type_ == "text":
            null, default = True, ""
        return Column(name, type_, null or (type_ in MOMENTS and not default), default)

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
        type_ = self._random.choice(column.family())
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
        return self._changed(
            _of_type(column, self._random.choice(self._random.choice(families))), before
        )

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


@dataclass(slots=True)
class _Shard:
    """A shard on its way: what it has done, what it has still to do, its rows' ids."""

    source: str
    table: str
    model: Model
    ahead: list[Migration]
    first_id: int
    ids: list[int] = field(default_factory=list)
    next_id: int = 0

    def step(self, sql: str) -> dict[str, Any]:
        return {"source": self.source, "table": self.table, "sql": sql}

    def migrate(self) -> list[dict[str, Any]]:
        migration = self.ahead.pop(0)
        self.model = self.model.after(migration)
        before = [self.step(sql.format(table=self.table)) for sql in migration.before]
        return [*before, self.step(migration.sql(self.table))]

    def write(self, random: Random) -> dict[str, Any]:
        """An INSERT, UPDATE, DELETE, or an UPDATE of the key."""
        kind = random.choice(("insert", "insert", "update", "update", "delete", "key"))
        columns = [c for c in self.model.columns.values() if not c.base]
        if not self.ids or not columns or kind == "insert":
            return self.step(self.insert(random))
        row = random.choice(self.ids)
        if kind == "delete":
            self.ids.remove(row)
            return self.step(f"delete from {self.table} where id = {row}")
        if kind == "key":
            self.ids[self.ids.index(row)] = new = self._fresh_id()
            return self.step(f"update {self.table} set id = {new} where id = {row}")
        column = random.choice(columns)
        value = self._value(random, column)
        return self.step(f"update {self.table} set {column.name} = {value} where id = {row}")

    def insert(self, random: Random) -> str:
        rows = []
        columns = [
            c for c in self.model.columns.values()
            if not c.base and (random.random() < 0.7 or not (c.null or c.default))
        ]  # fmt: skip
        for _ in range(random.randint(1, 3)):
            self.ids.append(number := self._fresh_id())
            rows.append(f"({', '.join([str(number), *(self._value(random, c) for c in columns)])})")
        names = ", ".join(["id", *(c.name for c in columns)])
        return f"insert into {self.table} ({names}) values {', '.join(rows)}"

    def _fresh_id(self) -> int:
        self.next_id += 1
        return self.first_id + self.next_id

    @staticmethod
    def _value(random: Random, column: Column) -> str:
        if column.null and random.random() < 0.2:
            return "null"
        return literal(random, column.type)


def rollout(seed: int) -> dict[str, Any]:
    """The document of a scenario, see the case files' README."""
    random = Random(seed)
    mode = random.choice(("optimistic", "optimistic", "optimistic", "pessimistic"))
    renames = random.choice(("map", "map", "hold", "copy")) if mode == "optimistic" else "map"
    # Under `copy`, a column that was renamed once is not renamed again.
    apart = renames == "copy" or random.random() < 0.5
    writer = _Writer(random, set())
    start = Model({
        "a": Column("a", "int"), "b": Column("b", "varchar(20)"),
        "c": Column("c", "decimal(8,2)", null=False, default="0.0"),
        **{name: writer.new_column(name) for name in ("d", "e")[: random.randint(0, 2)]},
    })  # fmt: skip
    plan: list[Migration] = []
    model = start
    for _ in range(random.randint(1, 5)):
        plan.append(writer.migration(model, apart))
        model = model.after(plan[-1])
    own_order = apart and mode == "optimistic"
    tables = [("s1", "app1.t_1"), ("s2", "app1.t_1"), ("s2", "app1.t_2"), ("s1", "app2.t_1")]
    shards = []
    for number, (source, table) in enumerate(tables[: random.choice((2, 3, 3, 4))]):
        further = mode == "optimistic" and random.random() < 0.15
        done = random.randint(0, len(plan)) if further else 0
        ahead = plan[done:]
        if own_order:
            random.shuffle(ahead)
        if mode == "optimistic" and random.random() < 0.25:
            ahead = _with_mistake(random, writer, ahead)
        begin = start
        for migration in plan[:done]:
            begin = begin.after(migration)
        shards.append(_Shard(source, table, begin, ahead, 1000 * (number + 1)))
    created = [
        {"source": s.source, "table": s.table, "create": s.model.create(s.table)} for s in shards
    ]
    before = [s.step(s.insert(random)) for s in shards if random.random() < 0.7]
    steps = _steps(random, shards)
    return {
        "id": f"random_{seed}",
        "title": f"{len(plan)} migrations of {len(shards)} shards",
        "mode": mode,
        "renames": renames,
        "any_order": random.random() < 0.5,
        "route": "app1.t_*, app2.t_* of every source -> merged.t",
        "target": "merged.t",
        "sources": created,
        "rows_before_start": before,
        "steps": [{"n": number, **step} for number, step in enumerate(steps, 1)],
        "final": {"basis": "all shards have one schema at the end", "as_shards": True},
    }


def _with_mistake(random: Random, writer: _Writer, ahead: Sequence[Migration]) -> list[Migration]:
    """A migration whose column is first added as another one, and dropped again."""
    adding = [m for m in ahead if len(m.actions) == 1 and m.put and not m.put[0].base
              and m.actions[0].startswith("add")]  # fmt: skip
    if not adding:
        return list(ahead)
    right = random.choice(adding)
    wrong = writer.new_column(right.put[0].name)
    names = frozenset((wrong.name,))
    mistake = Migration((f"add column {wrong.definition()}",), names, put=(wrong,))
    undo = Migration((f"drop column {wrong.name}",), names, gone=names)
    at = ahead.index(right)
    return [*ahead[:at], mistake, undo, *ahead[at:]]


def _steps(random: Random, shards: list[_Shard]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    while any(shard.ahead for shard in shards):
        shard = random.choice(shards)
        if shard.ahead and random.random() < 0.5:
            steps += shard.migrate()
            if random.random() < 0.7:
                steps.append(shard.step(shard.insert(random)))
        else:
            steps.append(shard.write(random))
    steps += [shard.write(random) for shard in shards]
    return steps
