"""Names and the expressions that list them: one rule, wherever it is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.connectors.repair.diagnosis.captured import Captured
from shardmerge.schemas.lattice.left_out_columns import is_left_out
from shardmerge.schemas.model.names import matches
from shardmerge.schemas.pipeline.settings import Source
from tests.strategies import SERVER


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        ("a_.*", "A_1", True), ("a_", "a_1", False), ("x|a", "a", True), ("x|a", "xa", False),
        ("a", "a\n", False), (r"a\.b", "a.b", True),
    ],
)  # fmt: skip
def test_an_expression_is_for_the_whole_name_in_any_case(
    pattern: str, name: str, found: bool
) -> None:
    assert matches(pattern, name) is found
    assert is_left_out(name, pattern) is found
    source = Source("s", "h", 1, "u", "p", 1, databases=pattern)
    assert source.reads_database(name) is found
    tables = replace(source, databases=".*", tables=f"d\\.(?:{pattern})")
    assert tables.reads_table("d", name) is found
    captured = Captured({"table.include.list": f"d\\.(?:{pattern})"}, SERVER)
    assert captured._is_read(f"d.{name}") is found
