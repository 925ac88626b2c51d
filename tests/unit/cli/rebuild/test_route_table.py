from __future__ import annotations

import pytest

from shardmerge.cli.rebuild.route_table import line_of, with_where
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import TargetTable

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
