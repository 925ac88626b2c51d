from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.policies import RowOperation
from shardmerge.spark_sink.validation.compared_table import ComparedTable, compared_table
from shardmerge.spark_sink.validation.later_parts import later_part

from .facts import RULE, S1, S2, shard, target

OWN = "CREATE TABLE t (id int PRIMARY KEY, a int)"
MORE = "CREATE TABLE t (id int PRIMARY KEY, a int, b int)"
WIDER = "CREATE TABLE t (id bigint PRIMARY KEY, a bigint)"


def of(*creates: str, merged: str = MORE, where: str = "") -> ComparedTable:
    rule = replace(RULE, where=where)
    names = (S1, S2)
    return compared_table(
        target(merged),
        [shard(name, create, rule) for name, create in zip(names, creates, strict=False)],
    )


def test_a_shard_and_a_column_that_came_are_named() -> None:
    assert later_part(of(OWN), of(OWN, OWN)) == str(S2)
    assert later_part(of(OWN, MORE), of(MORE, MORE)) == f"column b of {S1}"
    assert later_part(of(OWN), of(OWN, where="id > 5")) == f"other rows of {S1}"


def test_what_is_left_out_and_other_types_are_nothing_later() -> None:
    assert later_part(of(OWN, OWN), of(OWN)) == ""
    assert later_part(of(MORE), of(OWN)) == ""
    assert later_part(of(OWN), of(WIDER, merged=WIDER)) == ""


def test_what_was_not_judged_before_is_named() -> None:
    ignoring = replace(RULE, ignore=(RowOperation.INSERT, RowOperation.UPDATE))
    before = compared_table(target(OWN), [shard(S1, OWN, ignoring)])
    assert later_part(before, of(OWN, merged=OWN)) == "rows that the target lacks"
    assert later_part(of(OWN, merged=OWN), before) == ""
