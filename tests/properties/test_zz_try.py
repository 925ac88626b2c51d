from hypothesis import HealthCheck, given, settings

from shardmerge.schemas.ddl.apply.actions import schema_after
from shardmerge.schemas.records.earlier_statements import actions_of
from shardmerge.schemas.target.dialects.spark import SparkDialect
from shardmerge.schemas.target.diff import CannotRender, diff
from tests.properties.test_dialect_laws import brought, dialects
from tests.strategies import shard_tables
from tests.target_moves import *

S = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))


@S
@given(dialects, shard_tables(), shard_tables())
def test_it(dialect, before, after):
    old, new, statements = brought(dialect, before, after)
    made = diff(None, (), old, TARGET, dialect)
    for g in (made, statements):
        if isinstance(g, CannotRender):
            continue
        schema = None if g is made else old.schema
        for s in g:
            assert s.actions
            got = actions_of(s.sql)
            assert got == s.actions, s.sql
            if s.kind.value != "rows":
                a = executed(schema, s, dialect.server)
                assert schema_after(schema, s.actions, TARGET, dialect.server) == a
                schema = a


@S
@given(shard_tables(), shard_tables())
def test_spark(before, after):
    old, new, statements = brought(SparkDialect(), before, after)
    made = diff(None, (), old, TARGET, SparkDialect())
    for g in (made, statements):
        if isinstance(g, CannotRender):
            continue
        for s in g:
            assert s.actions
            got = actions_of(s.sql)
            assert got == s.actions, s.sql
