"""Which expressions have another value in another time zone."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.expressions import canonical
from shardmerge.schemas.ddl.session_zone import depends_on_zone
from shardmerge.schemas.model.server_context import ServerContext


@pytest.mark.parametrize(
    ("sql", "depends"),
    [
        ("date(ts)", True), ("hour(ts) between 8 and 18", True), ("ts > '2020-01-01'", True),
        ("ts = dt", True), ("ts + interval 1 day", True), ("concat(ts)", True),
        ("unix_timestamp(dt)", True), ("from_unixtime(n)", True), ("ts", True),
        ("convert_tz(dt, 'SYSTEM', '+00:00')", True), ("if(n > 0, ts, dt)", True),
        ("coalesce(ts, dt)", True),
        ("unix_timestamp(ts)", False), ("unix_timestamp(coalesce(ts, `Other``s`))", False),
        ("ts is not null", False), ("ts <= `Other``s`", False), ("ts is null or n > 1", False),
        ("ts between `other``s` and TS", False), ("date(dt)", False), ("n + 1", False),
        ("concat('`ts`', n)", False), ("concat('from_unixtime(', n)", False),
        ("convert_tz(dt, '+01:00', '+00:00')", False),
    ],
)  # fmt: skip
def test_what_depends_on_the_time_zone(sql: str, depends: bool) -> None:
    text = canonical(sql, ServerContext())
    assert depends_on_zone(text, ["ts", "Other`s"]) is depends


@pytest.mark.parametrize(
    ("sql", "depends"),
    [
        ("ts", False), ("coalesce(ts, other)", False), ("if(ts is null, other, ts)", False),
        ("dt", True), ("ts + interval 1 day", True), ("'2020-01-01'", True),
    ],
)  # fmt: skip
def test_a_value_that_becomes_a_moment(sql: str, depends: bool) -> None:
    text = canonical(sql, ServerContext())
    assert depends_on_zone(text, ["ts", "other"], is_moment=True) is depends
