"""Random rollouts: what a team could do to its shards, from a seed. Pure.

All shards go the same way from one schema to another, each at its own time; some go it in another
order, make a mistake and take it back, begin further on, get another name, or come to be in the
middle. Rows are written all the while. At the end the shards have one schema, so the target must
have it too, and the union of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from .migrations import Column, Migration, Migrations, Model, literal


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

    def rename(self, table: str) -> dict[str, Any]:
        """Give the table another name."""
        step = self.step(f"rename table {self.table} to {table}")
        self.table = table
        return step

    def like(self, table: str, first_id: int) -> tuple[_Shard, dict[str, Any]]:
        """A new shard of the same source, made like this one, and the statement that makes it."""
        shard = _Shard(self.source, table, self.model, list(self.ahead), first_id)
        return shard, shard.step(f"create table {table} like {self.table}")

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
    writer = Migrations(random, set())
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
    steps = _steps(random, shards, moves=mode == "optimistic")
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


def _with_mistake(
    random: Random, writer: Migrations, ahead: Sequence[Migration]
) -> list[Migration]:
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


def _steps(random: Random, shards: list[_Shard], *, moves: bool) -> list[dict[str, Any]]:
    """What happens, in one order; with ``moves`` shards also come, and get other names.

    They get them before anybody migrates: the rows of a shard that is held are passed over when it
    goes, so that those which were deleted meanwhile stay in the target.
    """
    steps = _renames(random, shards) if moves else []
    while any(shard.ahead for shard in shards):
        shard = random.choice(shards)
        chance = random.random()
        if moves and chance < 0.02:
            made, step = shard.like(f"app1.t_{10 + len(shards)}", 1000 * (len(shards) + 1))
            shards.append(made)
            steps.append(step)
        elif shard.ahead and chance < 0.5:
            steps += shard.migrate()
            if random.random() < 0.7:
                steps.append(shard.step(shard.insert(random)))
        else:
            steps.append(shard.write(random))
    steps += [shard.write(random) for shard in shards]
    return steps


def _renames(random: Random, shards: list[_Shard]) -> list[dict[str, Any]]:
    steps = [random.choice(shards).write(random) for _ in range(random.randint(0, 3))]
    for number, shard in enumerate(shards):
        if random.random() < 0.05:
            steps.append(shard.rename(f"app2.t_{20 + number}"))
            steps.append(shard.write(random))
    return steps
