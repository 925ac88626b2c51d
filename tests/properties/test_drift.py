"""Laws of drift: what was changed by hand is found, all of it and nothing else, and healed."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from shardmerge.schemas.ddl.apply.statements import apply_alter
from shardmerge.schemas.ddl.changes import AlterTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.actions import Adoption, TableCreation
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.drift import DriftKind
from shardmerge.schemas.target.dialects.mysql_dialect import MySqlDialect
from shardmerge.schemas.target.dialects.tidb import TiDbDialect
from shardmerge.schemas.target.drift import adoption_of, checked_adoption, differences
from shardmerge.schemas.target.drift_healing import healing
from shardmerge.schemas.target.table_state import TableState, executed_state, state_after
from tests.strategies import shard_tables
from tests.target_moves import TARGET, to_target

SERVERS = (
    ServerContext("mysql", (8, 0, 36), default_database="merged"),
    ServerContext("mariadb", (10, 11, 6), default_database="merged"),
)
TIDB = replace(TiDbDialect().server, default_database="merged")
DIALECTS = (*map(MySqlDialect, SERVERS), TiDbDialect(TIDB))
OWN = (
    "ADD COLUMN x INT",
    "ADD COLUMN y VARCHAR(10)",
    "ADD COLUMN z DATETIME",
    "ADD COLUMN w INT",
    "ADD COLUMN v VARCHAR(10)",
    "ADD COLUMN t VARCHAR(10)",
    "ADD COLUMN q INT DEFAULT 4",
    "ADD INDEX own (x)",
    "ADD UNIQUE INDEX u (y)",
    "ADD CONSTRAINT less CHECK (x < 9)",
)
_HARMLESS, _REFUSES = DriftKind.HARMLESS, DriftKind.REFUSES
_VALUES, _MISSING = DriftKind.VALUES, DriftKind.MISSING
BY_HAND = {
    "ADD COLUMN new INT": ("column:new", _HARMLESS),
    "ADD COLUMN must INT NOT NULL": ("column:must", _REFUSES),
    "ADD COLUMN twice INT GENERATED ALWAYS AS (q * 2) VIRTUAL": ("column:twice", _HARMLESS),
    "DROP COLUMN w": ("column:w", _MISSING),
    "MODIFY COLUMN x BIGINT": ("column:x", _HARMLESS),
    "MODIFY COLUMN z DATETIME NOT NULL": ("column:z", _REFUSES),
    "MODIFY COLUMN v VARCHAR(4)": ("column:v", _REFUSES),
    "MODIFY COLUMN t DATE": ("column:t", _VALUES),
    "ALTER COLUMN q SET DEFAULT 5": ("column:q", _VALUES),
    "ADD INDEX more (v)": ("index:more", _HARMLESS),
    "ADD UNIQUE INDEX one (z)": ("index:one", _VALUES),
    "DROP INDEX own": ("index:own", _MISSING),
    "DROP INDEX u, ADD UNIQUE INDEX u (x, y)": ("index:u", _VALUES),
    "ADD CONSTRAINT big CHECK (q > 1)": ("check:big", _REFUSES),
    "DROP CONSTRAINT less": ("check:less", _MISSING),
    "ADD CONSTRAINT up FOREIGN KEY (id) REFERENCES p (id)": ("foreign key:up", _REFUSES),
    "DEFAULT CHARACTER SET latin1": ("charset", _HARMLESS),
    "PARTITION BY HASH (id) PARTITIONS 2": ("partitioning", _HARMLESS),
}
"""A change by hand → the subject that differs then, and what that can do to rows."""


def altered(schema: TableSchema, clauses: str, server: ServerContext) -> TableSchema:
    """The table after an ALTER TABLE, as the tracker reads it."""
    sql = clauses if clauses.startswith("ALTER TABLE") else f"ALTER TABLE {TARGET.sql} {clauses}"
    statement = parse(sql, server)
    assert isinstance(statement, AlterTable)
    return apply_alter(schema, statement, TARGET.table, server).schema


def decided(shards: list[TableSchema], dialect: MySqlDialect) -> TableState:
    """A target's table, with parts of every kind."""
    server = dialect.server
    target = to_target(shards, dialect=dialect)
    assume(target.refusal is None)
    assume("id" in {column.name for column in target.schema.columns})
    schema = target.schema
    for clause in OWN:
        schema = altered(schema, clause, server)
    return TableState(schema).in_context(server)


@given(
    st.sampled_from(DIALECTS),
    shard_tables(max_size=2),
    st.lists(st.sampled_from(sorted(BY_HAND)), unique=True),
)
def test_changes_by_hand_are_found_and_healed(
    dialect: MySqlDialect, shards: list[TableSchema], changes: list[str]
) -> None:
    server = dialect.server
    changes = [each for each in changes if server.stores_checks or "CONSTRAINT" not in each]
    expected = decided(shards, dialect)
    assert expected.schema is not None
    schema = expected.schema
    for change in changes:
        schema = altered(schema, change, server)
    there = TableState(schema).in_context(server)

    found = differences(expected, there)
    assert {each.subject: each.kind for each in found} == dict(BY_HAND[c] for c in changes)
    assert differences(expected, expected) == ()

    healed, by_hand = schema, set()
    for step in healing(found, expected, there, TARGET, dialect):
        if step.reason:
            assert isinstance(dialect, TiDbDialect)
            by_hand.add(step.subject)
        else:
            healed = altered(healed, step.sql, server)
    left = differences(expected, TableState(healed).in_context(server))
    assert {each.subject for each in left} <= by_hand


@given(
    st.sampled_from(SERVERS),
    shard_tables(max_size=2),
    st.lists(st.sampled_from(sorted(BY_HAND)), unique=True),
)
def test_what_is_adopted_is_expected_and_its_loss_is_found(
    server: ServerContext, shards: list[TableSchema], changes: list[str]
) -> None:
    expected = decided(shards, MySqlDialect(server))
    assert expected.schema is not None
    schema = expected.schema
    for change in changes:
        schema = altered(schema, change, server)
    there = TableState(schema, {"trigger:audit": "AFTER INSERT x"}).in_context(server)

    found = differences(expected, there)
    adopted, refused = expected, set()
    for each in found:
        adoption = adoption_of(each, there)
        if isinstance(adoption, str):
            refused.add(each.subject)
        else:
            adopted = state_after(adopted, (checked_adoption(adoption),), TARGET, server)
    assert refused == {"column:w"} & {each.subject for each in found}
    assert {each.subject for each in differences(adopted, there)} == refused
    # What was adopted counts as decided: the table as it was before lacks it.
    assert {each.subject for each in differences(adopted, expected)} == {
        each.subject for each in found
    } - refused


@given(shard_tables(max_size=2))
def test_executed_statements_make_the_table_that_they_make_one_by_one(
    shards: list[TableSchema],
) -> None:
    server = SERVERS[0]
    target = to_target(shards)
    assume(target.refusal is None)
    state = executed_state([(TableCreation(target.schema),)], TARGET, server)
    state = state.in_context(server)
    assert differences(state, TableState(target.schema).in_context(server)) == ()
    assert adoption_of(differences(state, TableState(None))[0], TableState(None)) != Adoption(
        "table", ""
    )
