"""The generated parts of the documents are what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.generate import PART, filled, generated
from shardmerge.schemas.model.policies import ExistingRows
from shardmerge.schemas.pipeline.settings import Sink
from tests.unit.docs.documents import DOCS, name_of

PAGES = sorted(DOCS.rglob("*.md"))
MADE = generated()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_the_parts_that_the_code_gives(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert filled(text, MADE) == text, "run `make reference`"


def test_every_generated_part_has_its_place() -> None:
    used = [m[2] for page in PAGES for m in PART.finditer(page.read_text(encoding="utf-8"))]
    assert sorted(used) == sorted(MADE)


def test_every_key_of_the_pipeline_file_has_a_meaning() -> None:
    tables = ("kafka", "connect", "sources", "routes", "target", "sink", "web")
    rows = [line for name in tables for line in MADE[name].splitlines()[2:]]
    assert len(rows) > 50
    assert [row for row in rows if re.search(r"\|\s*\|$", row)] == []


def test_a_key_has_its_default_and_a_policy_its_values() -> None:
    assert f"| `gather_ms` | int | `{Sink().gather_ms}` |" in MADE["sink"]
    for value in ExistingRows:
        assert f'`"{value.value}"`' in MADE["routes"]
