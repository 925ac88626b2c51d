from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.policies import RowOperation
from shardmerge.schemas.records.plain import dump, load
from shardmerge.spark_sink.validation.compared_table import ComparedTable, compared_table
from shardmerge.spark_sink.validation.proofs import (
    NO_PROOF,
    Compared,
    Proof,
    proof_of,
    reason_to_compare_all,
    reason_to_prove_nothing,
)

from .facts import RULE, S1, shard, target

OWN = "CREATE TABLE t (id int PRIMARY KEY, a int)"
PLACE = ("s1.app.t_1", 0)


def compared(own: str = OWN, **rule: object) -> ComparedTable:
    return compared_table(target(own), [shard(S1, own, replace(RULE, **rule))])  # type: ignore[arg-type]


TABLE = compared()
WHAT = Compared(2, TABLE, {"s1": 0})
PROVEN = proof_of({PLACE: 7}, WHAT)


def test_a_proof_of_the_same_table_leaves_only_later_records_open() -> None:
    assert reason_to_compare_all(PROVEN, WHAT, {PLACE: 7}) == ""
    assert PROVEN.places == {PLACE: 7}
    assert load(Proof, dump(PROVEN)) == PROVEN


def test_what_makes_a_proof_void_is_told() -> None:
    def reason(proof: Proof = PROVEN, begin: int = 0, **other: object) -> str:
        return reason_to_compare_all(proof, replace(WHAT, **other), {PLACE: begin})  # type: ignore[arg-type]

    assert "proved anything" in reason(NO_PROOF)
    assert "have changed" in reason(version=3)
    assert "have changed" in reason(epochs={"s1": 1})
    other = "CREATE TABLE t (id int PRIMARY KEY, a bigint)"
    assert "have changed" in reason(table=compared(other))
    assert reason(begin=8) == "Kafka has removed records of s1.app.t_1/0 meanwhile"


def test_a_partition_that_was_not_there_is_read_from_its_beginning() -> None:
    begins = {PLACE: 0, ("s1.app.t_1", 1): 0}
    assert reason_to_compare_all(PROVEN, WHAT, begins) == ""
    assert reason_to_compare_all(PROVEN, WHAT, {**begins, ("s1.app.t_1", 1): 1})


def test_tables_whose_comparison_proves_nothing_for_later() -> None:
    assert reason_to_prove_nothing(TABLE) == ""
    assert "without a primary key" in reason_to_prove_nothing(compared("CREATE TABLE t (a int)"))
    assert "ignores" in reason_to_prove_nothing(compared(ignore=(RowOperation.DELETE,)))
    enum = "CREATE TABLE t (k enum('a') PRIMARY KEY)"
    assert "of type enum" in reason_to_prove_nothing(compared(enum))
    counted = replace(compared(where="a LIKE 'x%'"), other_keys=True)
    assert "cannot count" in reason_to_prove_nothing(counted)
