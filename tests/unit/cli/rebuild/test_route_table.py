from __future__ import annotations

import pytest

from shardmerge.cli.rebuild.route_table import (
    line_of,
    origin_line,
    with_origin,
    with_origin_of,
    with_where,
)
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin, OriginColumn, OriginPart

TARGET = TargetTable("merged", "t")
FILE = """# of the shop
[pipeline]
name = "shop"

[[routes]]
database = "other"   # another one
table = ".*"
target = "merged.other"
where = "x = 1"

[[routes]]
database = "app"
table = "t_.*"
target = "merged.t"  # ours
"""


def test_only_the_targets_condition_is_written() -> None:
    edited = with_where(FILE, TARGET, "kind = 'a' AND id > 3")
    assert edited == FILE + "where = \"kind = 'a' AND id > 3\"\n"
    assert with_where(edited, TARGET, "b") == FILE + 'where = "b"\n'
    assert with_where(edited, TARGET, "") == FILE
    assert with_where(FILE, TARGET, "") == FILE


@pytest.mark.parametrize("target", [TargetTable("merged", "u"), TargetTable("merged", "other")])
def test_a_file_without_one_route_to_the_target_is_left_as_it_is(target: TargetTable) -> None:
    twice = FILE.replace("merged.t", "merged.other")
    with pytest.raises(ConfigError, match="tables") as raised:
        with_where(twice, target, "b")
    assert raised.value.code == "SM-6522"
    assert 'where = "b"' in (raised.value.hint or "")


def test_what_is_no_toml_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        with_where("[pipeline", TARGET, "b")


def test_a_condition_is_shown_as_a_line() -> None:
    assert line_of("kind = 'a'") == "where = \"kind = 'a'\""


APART = Origin(
    (
        OriginColumn(OriginPart.SHARD, "_shard"),
        OriginColumn(OriginPart.GROUP, "_n", "n", "int"),
    ),
    in_keys=True,
)
LINE = 'origin = {shard = "_shard", groups = {n = {name = "_n", type = "int"}}, in_keys = true}'


def test_only_the_targets_origin_columns_are_written() -> None:
    edited = with_origin(FILE, TARGET, APART)
    assert edited == f"{FILE}{LINE}\n"
    assert origin_line(APART) == LINE
    assert with_origin(edited, TARGET, APART) == edited
    assert with_origin(edited, TARGET, NO_ORIGIN) == FILE == with_origin(FILE, TARGET, NO_ORIGIN)
    with pytest.raises(ConfigError) as raised:
        with_origin(FILE.replace("merged.t", "merged.other"), TARGET, APART)
    assert (raised.value.code, LINE in (raised.value.hint or "")) == ("SM-6528", True)


def test_origin_columns_are_given_as_the_file_has_them() -> None:
    assert with_origin_of(FILE, TARGET, '{ shard = "_s" }').endswith('origin = {shard = "_s"}\n')
    assert with_origin_of(f'{FILE}origin = {{ shard = "_s" }}\n', TARGET, "") == FILE
    for wrong in ("{ shard", "{ shard = _s }"):
        with pytest.raises(ConfigError, match="--with origin"):
            with_origin_of(FILE, TARGET, wrong)
