"""The registry of codes is complete, sorted into families, and gives no code a second time."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from shardmerge.schemas.codes.registry import Code, coded, codes, families

PUBLISHED = resources.files("shardmerge.schemas.codes").joinpath("published.txt")


def published() -> dict[str, str]:
    """Code → its title, or "retired: " and the title that it had."""
    lines = PUBLISHED.read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" ", 1) for line in lines if not line.startswith("#")]
    assert [code for code, _ in pairs] == sorted({code for code, _ in pairs})
    return dict(pairs)


def test_every_code_is_in_the_list_of_published_ones_with_its_title() -> None:
    titles = published()
    wrong = {c.code: c.title for c in codes().values() if titles.get(c.code) != c.title}
    assert wrong == {}, "add new codes to published.txt; a code keeps its title"


def test_a_published_code_is_registered_or_retired() -> None:
    gone = {code for code, title in published().items() if code not in codes()}
    assert [code for code in gone if not published()[code].startswith("retired: ")] == []


def test_a_code_stands_in_the_family_of_its_digits() -> None:
    for family in families():
        assert family.about.endswith(".")
        for each in family.codes:
            assert each.code.startswith(f"SM-{family.digits}")
            assert re.fullmatch(r"SM-\d{4}", each.code)
    assert len(codes()) == sum(len(family.codes) for family in families())


@pytest.mark.parametrize("each", codes().values(), ids=lambda each: each.code)
def test_a_code_says_what_was_seen_why_and_what_to_do(each: Code) -> None:
    assert not each.title.endswith(".")
    assert each.seen.endswith(".")
    assert each.cause.endswith(".")
    assert each.remedy.endswith((".", "`"))
    assert each.remedy.count("`") % 2 == 0
    assert str(each).startswith(f"{each.code}: {each.title}\n")


def test_titles_are_different() -> None:
    assert len({each.title for each in codes().values()}) > len(codes()) - 2


def test_a_text_without_a_code_stays_as_it_is() -> None:
    assert coded("", "why") == "why"
    assert coded("SM-1203", "why") == "SM-1203: why"
