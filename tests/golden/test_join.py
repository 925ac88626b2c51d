"""Shards in, the target's CREATE TABLE or the conflict out."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardmerge.schemas.lattice.join import join_tables
from shardmerge.schemas.lattice.joined import Conflict
from shardmerge.schemas.model.mysql_text import create_table
from shardmerge.schemas.target.target_table import target_schema
from tests.strategies import table

FILES = sorted((Path(__file__).parent / "join").glob("*.yaml"))


def answer(shards: list[str]) -> str:
    joined = join_tables([table(sql) for sql in shards])
    if isinstance(joined, Conflict):
        return f"conflict: {joined}. {joined.resolve}"
    return create_table(target_schema(joined, (), "t").schema, "t")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_join_of_shards_is_the_reviewed_one(file: Path, update_golden: bool) -> None:
    cases: list[dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    found = [{**case, "target": answer(case["shards"])} for case in cases]
    if update_golden:
        text = yaml.safe_dump(found, sort_keys=False, width=1000, allow_unicode=True)
        file.write_text(text, encoding="utf-8")
    assert found == cases or update_golden


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_reviewed_joins_do_not_depend_on_the_order_of_shards(file: Path) -> None:
    for case in yaml.safe_load(file.read_text(encoding="utf-8")):
        joins = [join_tables([table(s) for s in order]) for order in permutations(case["shards"])]
        assert all(joined == joins[0] for joined in joins), case["name"]


def test_there_are_cases() -> None:
    assert len(FILES) >= 2
