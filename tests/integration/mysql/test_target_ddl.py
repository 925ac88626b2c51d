"""What ``diff`` renders, executed: every statement is legal and leads where the tracker says.

In sessions as the sink's. ``SHARDMERGE_TARGET_EXAMPLES`` sets the pairs of schemas per server.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Sequence

import yaml
from hypothesis import HealthCheck, assume, given, settings

from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.schemas.ddl.apply.actions import schema_after
from shardmerge.schemas.ddl.canonical.normalize import normalize
from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.schemas.target.dialects.dialect import CannotRender
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.schemas.target.dialects.mysql_dialect import MySqlDialect
from shardmerge.schemas.target.diff import diff
from shardmerge.schemas.target.table_comparison import difference, is_same
from shardmerge.schemas.target.target_table import TargetSchema
from shardmerge.spark_sink.targets.mysql.ddl.introspection import (
    schema_of,
    server_context,
    show_create,
)
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.golden.test_diff import FILES, Rollout
from tests.strategies import shard_tables
from tests.target_moves import TARGET, to_target

EXAMPLES = int(os.environ.get("SHARDMERGE_TARGET_EXAMPLES", "40"))
REPEATABLE = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
_VALUES = {
    "date": "'2020-01-01'", "datetime": "'2020-01-01 00:00:00'", "json": "'{}'",
    "timestamp": "'2020-01-01 00:00:00'", "enum": "'a'", "set": "'a'",
}  # fmt: skip


class Target:
    """A server's one target table, and the dialect that its version asks for."""

    def __init__(self, place: int | MySqlAddress) -> None:
        if isinstance(place, int):
            place = MySqlAddress("127.0.0.1", place, USER, PASSWORD)
        self.session = MySqlSession(place)
        facts = self.session.facts
        version = ".".join(map(str, facts.version))
        dialect = dialect_of(facts.kind, version)
        assert isinstance(dialect, MySqlDialect)
        self.dialect = dialect
        self.kind = f"{facts.kind} {version}"
        # Takes no default for text, blobs and JSON.
        self.lacks_defaults = self.kind.startswith(("mysql 5.7", "tidb"))
        self.renew()

    def renew(self) -> None:
        self.session.execute("DROP DATABASE IF EXISTS merged")
        self.session.execute("CREATE DATABASE merged CHARACTER SET utf8mb4")
        self.context = server_context(self.session, "merged")

    def schema(self) -> TableSchema | None:
        return schema_of(show_create(self.session, TARGET), self.context)

    def fitted(
        self, shards: list[TableSchema], previous: TargetSchema | None = None
    ) -> TargetSchema:
        to = to_target(shards, previous, self.dialect)
        assume(to.refusal is None)
        return to

    def move(
        self, old: TargetSchema | None, new: TargetSchema, *, rows: bool = False
    ) -> tuple[str, ...]:
        """Execute the difference, comparing after each statement; what was executed."""
        schema, columns = (old.schema, old.columns) if old else (None, ())
        statements = diff(schema, columns, new, TARGET, self.dialect)
        assume(not isinstance(statements, CannotRender))
        assert not isinstance(statements, CannotRender)
        return self.run(statements, new.schema, rows=rows)

    def run(
        self, statements: Sequence[TargetStatement], to: TableSchema, *, rows: bool = False
    ) -> tuple[str, ...]:
        """See ``move``."""
        done = []
        for statement in statements:
            before = self.schema()
            expected = before
            if statement.kind is not StatementKind.ROWS:
                expected = schema_after(before, statement.actions, TARGET, self.context)
            try:
                self.session.execute(statement.sql)
            except TargetError as error:
                if rows and statement.kind is not StatementKind.EXPANDING:
                    break  # The rows are in the way: such a debt stays open.
                raise AssertionError(f"{statement.sql}: {error.message}") from None
            real = self.schema()
            assert is_same(expected, real), f"{statement.sql}: {difference(expected, real)}"
            done.append(statement.sql)
        else:
            real = self.schema()
            # What is another collation to the shards' servers may be the default of this one.
            wanted = normalize(to, TARGET.table, self.context)
            assert is_same(wanted, real), f"{done}: {difference(wanted, real)}"
        return tuple(done)

    def insert(self, schema: TableSchema) -> None:
        """One row with a value in each column that takes one."""
        columns = [c for c in schema.columns if c.generated is None]
        names = ", ".join(f"`{c.name}`" for c in columns)
        values = ", ".join(map(_value, columns))
        self.session.execute(f"INSERT INTO {TARGET.sql} ({names}) VALUES ({values})")


def _value(column: Column) -> str:
    return _VALUES.get(column.type.name, "2")


def test_every_statement_is_legal_and_leads_where_the_tracker_says(
    server: str, server_port: Callable[[str], int | MySqlAddress]
) -> None:
    target = Target(server_port(server))
    executed: set[str] = set()

    @REPEATABLE
    @given(shard_tables(), shard_tables())
    def law(before: list[TableSchema], after: list[TableSchema]) -> None:
        old = target.fitted(before)
        new = target.fitted(after, old)
        target.renew()
        executed.update(target.move(None, old))
        executed.update(target.move(old, new))

    law()
    print(f"{target.dialect.name}: {len(executed)} different statements")
    assert len(executed) > EXAMPLES


def test_expanding_statements_are_executed_over_rows_that_are_there(
    server: str, server_port: Callable[[str], int | MySqlAddress]
) -> None:
    target = Target(server_port(server))
    executed: set[str] = set()

    @REPEATABLE
    @given(shard_tables(), shard_tables())
    def law(before: list[TableSchema], after: list[TableSchema]) -> None:
        old = target.fitted(before)
        new = target.fitted(after, old)
        target.renew()
        target.move(None, old)
        target.insert(old.schema)
        executed.update(target.move(old, new, rows=True))

    law()
    print(f"{target.dialect.name}: {len(executed)} different statements over rows")
    assert executed


MORE = (
    ("create table t (id int primary key, a varchar(9) charset utf8mb3 collate utf8mb3_bin,"
     " b char(3) charset latin1 collate latin1_bin, unique key ua (a))",
     ("modify a varchar(20) charset utf8mb3 collate utf8mb3_bin", "rename column a to c",
      "add key kb (b desc)", "modify c varchar(20) charset utf8mb4 collate utf8mb4_bin")),
    ("create table t (id int primary key, s varchar(9) collate utf8mb4_0900_as_cs,"
     " u varchar(9) collate utf8mb4_unicode_520_ci)",
     ("add v varchar(9) collate utf8mb4_0900_ai_ci, add w varchar(9) collate utf8mb4_0900_bin",
      "add de varchar(9) collate utf8mb4_de_pb_0900_ai_ci", "drop column s")),
    ("create table t (id int primary key, j json not null, x blob not null,"
     " p point not null srid 4326, l linestring)",
     ("drop column j", "drop column x", "add k json not null, add y tinytext not null",
      "drop column l", "add z longblob default (0x6162), add d json default (json_array(1))")),
    ("create table t (id int primary key, ts timestamp not null, tn timestamp null,"
     " u timestamp(3) not null default now(3) on update now(3))",
     ("add v timestamp(2) not null", "drop column ts", "modify u timestamp(6) not null",
      "modify tn timestamp not null")),
    ("create table t (id int primary key, a int, g int as (a + 1) stored not null,"
     " v int as (a * 2), key kv (v), key kf ((a + 3)), constraint ca check (a > 0),"
     " constraint n check (a > 1) not enforced)",
     ("drop column v, drop key kf, drop check ca, drop check n, modify g int, rename column a to b",
      "modify g int as (b + 1) stored",
      "add v varchar(9) as (concat('a', b)), add key kv (v)", "drop column v")),
    ("create table t (id int primary key, e enum('a','b') not null, s set('x'), y year not null,"
     " b bit(3) not null, f float(7,4), d decimal(5,2) unsigned zerofill not null default 1.5)",
     ("modify e enum('a','b','c') not null", "drop column y, drop column b",
      "add t time(3) not null, add bi binary(3) not null",
      "add vb varbinary(9) not null default 'x'",
      "modify f float, modify d decimal(9,4) unsigned not null default 1.5")),
    ("create table t (a int, b int, c varchar(9) not null, primary key (a, b),"
     " fulltext key fc (c))",
     ("change a b int not null, change b a int not null", "drop primary key, add primary key (b)",
      "drop primary key, add primary key (c)", "modify c varchar(9) not null first")),
)  # fmt: skip
"""Tables of one and of two shards, and what is altered on the first one, then on the other."""


def test_every_reviewed_rollout_and_more_is_executed(
    server: str, server_port: Callable[[str], int | MySqlAddress]
) -> None:
    target = Target(server_port(server))
    cases = [case for file in FILES for case in yaml.safe_load(file.read_text(encoding="utf-8"))]
    rollouts = [
        (case["create"], case["shards"], [(step["shard"], step["sql"]) for step in case["steps"]])
        for case in cases
    ]
    for create, alters in MORE:
        for count in (1, 2):
            # Everything on the last shard, then again on the first.
            order = [shard for shard in reversed(range(count)) for _ in alters]
            rollouts.append((create, count, list(zip(order, alters * count, strict=True))))
    executed = 0
    for create, shards, steps in rollouts:
        target.renew()
        rollout = Rollout(create, shards, target.kind)
        if rollout.schema is None:
            continue
        executed += len(target.run(rollout.last, rollout.schema))
        for shard, sql in steps:
            answer = rollout.alter(shard, sql)
            assert rollout.schema is not None
            try:
                executed += len(target.run(rollout.last, rollout.schema))
            except AssertionError as error:
                error.add_note(f"{create}\n{shard}: {sql}\n{answer}")
                raise
    print(f"{target.dialect.name}: {executed} statements of {len(rollouts)} rollouts")
    assert executed > len(rollouts)


def test_a_column_without_a_default_becomes_not_null_when_its_rows_have_values(
    server: str, server_port: Callable[[str], int | MySqlAddress]
) -> None:
    """MySQL 5.7 takes no default for text: rows of before hold NULL until they are read again."""
    target = Target(server_port(server))
    rollout = Rollout("create table t (id int primary key)", 2, target.kind)
    assert rollout.schema is not None
    target.run(rollout.last, rollout.schema)
    added = "add c text not null, add d blob not null, add e json not null"
    rollout.alter(0, added)
    assert rollout.schema is not None
    target.run(rollout.last, rollout.schema)
    target.session.execute(f"INSERT INTO {TARGET.sql} (id) VALUES (1)")
    rollout.alter(1, added)
    assert rollout.schema is not None
    done = target.run(rollout.last, rollout.schema, rows=True)
    ((is_null,),) = target.session.query(f"SELECT c IS NULL FROM {TARGET.sql}")
    assert bool(is_null) == (done == ()) == target.lacks_defaults
    if not done:
        target.session.execute(f"UPDATE {TARGET.sql} SET c = '', d = '', e = 'null'")
        target.run(rollout.last, rollout.schema)
    schema = target.schema()
    assert schema is not None
    assert [column.nullable for column in schema.columns] == [False] * 4
    assert [column.default for column in schema.columns] == [None] * 4


FILLED = (
    "a int", "b varchar(9)", "c text", "d blob", "e json", "f date", "g datetime(6)", "h time",
    "i decimal(9,3)", "j enum('x','y')", "k bit(3)", "l binary(3)", "m double", "n year",
    "o set('x','y')", "p timestamp null",
)  # fmt: skip


def test_a_column_that_other_shards_lack_becomes_not_null_over_their_rows(
    server: str, server_port: Callable[[str], int | MySqlAddress]
) -> None:
    target = Target(server_port(server))
    stamp = "u timestamp not null default current_timestamp on update current_timestamp"
    rollout = Rollout(f"create table t (id int primary key, {stamp})", 2, target.kind)

    def follow() -> None:
        assert rollout.schema is not None
        target.run(rollout.last, rollout.schema)

    follow()
    rollout.alter(0, ", ".join(f"add {definition}" for definition in FILLED))
    follow()
    old = "2001-02-03 04:05:06"
    target.session.execute(f"INSERT INTO {TARGET.sql} (id, u) VALUES (1, '{old}'), (2, '{old}')")
    for definition in FILLED:
        rollout.alter(0, f"modify {definition.removesuffix(' null')} not null")
        follow()

    schema = target.schema()
    assert schema is not None
    nullable = {column.name for column in schema.columns if column.nullable}
    assert nullable == ({"c", "d", "e"} if target.lacks_defaults else set())
    rows = target.session.query(f"SELECT a, b, i, j, k, u FROM {TARGET.sql}")
    moment = datetime.datetime.fromisoformat(old)
    assert {(a, b, str(i), j, bytes(k), u) for a, b, i, j, k, u in rows} == {
        (0, "", "0.000", "x", b"\0", moment)
    }
