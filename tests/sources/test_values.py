"""Every type's boundary values, from each server: what no limit names is exact."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shardmerge.connectors.debezium.value_limits import LIMITS
from shardmerge.local.servers.stack import LocalStack
from tests.integration.spark import ways
from tests.integration.spark.exactness import FAMILIES
from tests.integration.spark.test_every_value import limits_of_difference
from tests.integration.spark.ways import Difference, Line
from tests.whole import IS_WHOLE

from .servers import Kind, kinds, only_what_it_has

KINDS = kinds("mysql97", "mariadb118")
pytestmark = pytest.mark.timeout(900)
PLAYED = tuple(FAMILIES) if IS_WHOLE else ("dates", "times")
LEAST = {
    "integers": 30, "numbers": 25, "dates": 10, "times": 8, "texts": 20, "bytes": 8, "shapes": 5,
}  # fmt: skip
"""Columns of a family that a server must have, or the test proves little."""


@pytest.fixture(scope="module")
def line(stack: LocalStack, kind: Kind) -> Iterator[Line]:
    """The families that the server has, read by one connector."""
    line = Line(stack, "json", PLAYED, server=kind.server, only=only_what_it_has)
    ways.before_start(line)
    line.start()
    ways.after_start(line)
    yield line
    line.close()


@pytest.mark.parametrize("family", PLAYED)
def test_what_is_not_exact_is_in_the_table_of_limits(line: Line, family: str) -> None:
    items = line.families[family]
    assert len(items) >= LEAST.get(family, 1), [item.column for item in items]
    found = ways.played(line, family)
    print(ways.matrix(items, found))
    unnamed = [d for d in found if not limits_of_difference(d)]
    assert unnamed == [], told(unnamed)


def told(found: list[Difference]) -> str:
    """A line for each difference."""
    return "\n".join(map(str, found)) + f"\nknown: {', '.join(limit.id for limit in LIMITS)}"
