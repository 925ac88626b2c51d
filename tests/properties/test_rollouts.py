"""Random rollouts through the coordinator: the schema that all shards end with is the target's."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.lattice.join import compare_tables
from shardmerge.schemas.model.policies import Mode, RenamePolicy
from tests.e2e.runner.rollouts import rollout
from tests.unit.agents.sql_line import SqlLine

SERVER = ServerContext(charset="latin1", collation="latin1_bin", version=(8, 0, 36))


def play(document: dict[str, Any]) -> SqlLine:
    """Feed the schema changes of a rollout, each shard as a source of its own."""
    line = SqlLine(Mode(document["mode"]), context=SERVER)
    line.renames = RenamePolicy(document["renames"])
    for shard in document["sources"]:
        _, _, definition = shard["create"].partition("(")
        columns, _, options = definition.rpartition(")")
        line.create(f"{shard['source']}/{shard['table']}", columns, options)
    for step in document["steps"]:
        verb, what, table, *rest = step["sql"].split(None, 3)
        name = f"{step['source']}/{table}"
        if verb == "alter":
            line.alter(name, rest[0])
        elif (verb, what) == ("create", "table"):
            other = rest[0].removeprefix("like ")
            line.send(name, line.schemas[f"{step['source']}/{other}"])
        elif (verb, what) == ("rename", "table"):
            new = rest[0].removeprefix("to ")
            schema = line.schemas[name]
            line.drop(name, f"RENAME TO {new}")
            line.send(f"{step['source']}/{new}", schema, actions=(f"RENAME FROM {table}",))
    return line


@given(st.integers(0, 10**9))
def test_a_rollout_ends_with_the_shards_schema_and_nobody_held(seed: int) -> None:
    line = play(rollout(seed))

    assert line.held == []
    shard, *others = line.schemas.values()
    assert all(compare_tables(shard, other).is_equal for other in others)
    assert line.target is not None
    assert compare_tables(shard, line.target).is_equal
    assert line.columns == sorted(column.name for column in shard.columns)
