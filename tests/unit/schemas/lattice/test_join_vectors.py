"""Vectors of another implementation of this algebra, and where ours decides otherwise, and why.

They are those of the published order: ``types = "published"``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from shardmerge.schemas.lattice.join import compare_tables, join_tables
from shardmerge.schemas.lattice.joined import Conflict
from shardmerge.schemas.lattice.type_join import PUBLISHED
from shardmerge.schemas.model.errors import UnparsableDDL
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.target.target_table import target_schema
from tests.strategies import table

HERE = Path(__file__).resolve().parent
OWN = HERE / "join_vectors.yaml"
# Handed over beside the project; a checkout without them has the own ones.
HANDED = HERE.parents[3] / "shared" / "cases" / "lattice.yaml"

_NO_IDS = "the target never makes up ids: AUTO_INCREMENT is not part of the value"
_KEY = "rows are told apart by the primary key: another one is a conflict"
_LATIN = "only utf8mb3 widens into utf8mb4"
_GENERATED = "a missing generated column is more compatible"
OTHERWISE = {
    "T10_autoinc_unique_missing": ("incomparable", "joined", _NO_IDS),
    "T16_latin1_utf8mb4": ("incomparable", "error", _LATIN),
    "T17_generated_missing": ("<", "joined", _GENERATED),
    "T19_generated_stored_missing": ("<", "joined", _GENERATED),
    "T28_pk_vs_none": ("incomparable", "error", _KEY),
    "T34_autoinc_key_dropped": ("incomparable", "joined", _NO_IDS),
    "T38_pk_lost_plus_column": ("incomparable", "error", _KEY),
    "T39_pk_moved": ("incomparable", "error", _KEY),
    "Y01": ("=", "joined", "display widths are not part of a type"),
    "Y02": ("=", "joined", "display widths are not part of a type"),
    "Y05": ("incomparable", "error", _LATIN),
    "Y08": ("<>", "joined", _NO_IDS),
    "Y09": ("<>", "joined", _NO_IDS),
    "Y11": ("incomparable", "joined", "the target can widen precision and scale"),
    "K04": ("<", "joined", "char(n) is less than varchar(n)"),
    "S03": ("incomparable", "error", _LATIN),
    "S07": ("incomparable", "error", _LATIN),
}
"""Vector → our order, whether ours is a conflict, and the rule that says so."""
NO_TABLE = {
    "Y10": "key flags of a column; as tables the index names decide",
    "K08": "key flags of a column; as tables the index names decide",
    "K10": "a list of properties, not a definition",
    "K11": "table options are not part of the value",
    "K12": "table options are not part of the value",
    "K13": "an option of another server",
}
"""Vectors that describe no pair of definitions here."""


def vectors() -> list[dict[str, Any]]:
    files = [OWN, *([HANDED] if HANDED.exists() else [])]
    return [
        vector
        for file in files
        for vector in yaml.safe_load(file.read_text(encoding="utf-8"))
        if vector["id"] not in NO_TABLE
    ]


def definition(text: str) -> TableSchema:
    """A side of a vector: a CREATE TABLE, or a column in the words of the vectors."""
    if text.upper().startswith("CREATE TABLE"):
        return table(text)
    for word, plain in (
        (" (no default)", ""), (", key", ", key (c)"), ("char(n)", "char(5)"),
        ("binary(n)", "binary(5)"), ("(utf8mb4)", "charset utf8mb4"),
        ("set(5 members)", "set('a','b')"), ("enum(5 members)", "enum('a','b')"),
    ):  # fmt: skip
        text = text.replace(word, plain)
    if text == "set":
        text = "set('a')"
    elif text.lower().startswith(("charset", "collate")):
        text = f"varchar(10) {text}"
    elif text in ("utf8", "utf8mb4"):
        text = f"varchar(10) charset {text}"
    return table(f"create table t (c {text})")


@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector["id"])
def test_a_vector_holds_or_ours_is_the_rule_that_is_listed(vector: dict[str, Any]) -> None:
    left, right = definition(vector["left"]), definition(vector["right"])
    expected, joins = vector["compare"], "error" if vector["join"] == "error" else "joined"
    if vector["id"] in OTHERWISE:
        expected, joins, reason = OTHERWISE[vector["id"]]
        assert reason
    joined = join_tables([left, right], PUBLISHED)
    assert isinstance(joined, Conflict) == (joins == "error"), joined
    if expected != "<>":
        assert str(compare_tables(left, right, PUBLISHED)) == expected
    if vector["id"] not in OTHERWISE and not isinstance(joined, Conflict):
        _is_the_vectors_join(joined, vector["join"])


def _is_the_vectors_join(joined: Any, text: str) -> None:
    try:
        wanted = definition(text)
    except UnparsableDDL:
        return  # a join in words
    ours = target_schema(joined).schema
    assert {c.name.lower() for c in ours.columns} == {c.name.lower() for c in wanted.columns}
    if text.upper().startswith("CREATE TABLE"):
        assert compare_tables(ours, wanted, PUBLISHED).is_equal, (ours, wanted)


def test_the_listed_differences_are_vectors() -> None:
    if HANDED.exists():
        handed = {v["id"] for v in yaml.safe_load(HANDED.read_text(encoding="utf-8"))}
        assert handed >= set(OTHERWISE) | set(NO_TABLE)
