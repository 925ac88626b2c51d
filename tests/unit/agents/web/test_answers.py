from __future__ import annotations

import pytest

from shardmerge.agents.pages.render import Asked
from shardmerge.agents.web.answers import HEADERS, asked_of, html


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ({}, Asked()),
        ({"search": " t_1 ", "columns": "all"}, Asked("t_1", every_column=True)),
        ({"page": "3", "older": "60"}, Asked(page=3, older=60)),
        ({"page": "-1", "older": "x"}, Asked()),
        ({"page": "9" * 500}, Asked()),
        ({"page": "٣"}, Asked(page=3)),
        ({"columns": "some"}, Asked()),
    ],
)
def test_a_query_asks_for_what_it_can(query, asked):
    assert asked_of(query) == asked


def test_a_page_may_load_nothing_from_elsewhere_and_run_nothing_inside():
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert html("x").headers["Content-Security-Policy"] == policy
