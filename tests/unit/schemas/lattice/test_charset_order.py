"""The join of collations where some say none: as fine as what the servers take instead."""

from __future__ import annotations

import pytest

from shardmerge.schemas.lattice.charset_order import joined_collation

MYSQL_57, MYSQL_80 = "utf8mb4_general_ci", "utf8mb4_0900_ai_ci"
MARIADB_115, TIDB = "utf8mb4_uca1400_ai_ci", "utf8mb4_bin"
NONE = ("utf8mb4", "")


@pytest.mark.parametrize(
    ("defaults", "other", "joined"),
    [
        ([], "unicode_ci", "utf8mb4_0900_bin"),
        ([MYSQL_80], "unicode_ci", "utf8mb4_0900_bin"),
        ([MYSQL_57], "unicode_ci", "utf8mb4_bin"),
        ([MARIADB_115], "unicode_ci", "utf8mb4_bin"),
        ([TIDB], "unicode_ci", "utf8mb4_bin"),
        # One server of several whose default tells trailing spaces apart is enough.
        ([MYSQL_57, MYSQL_80], "unicode_ci", "utf8mb4_0900_bin"),
        ([MYSQL_57, MARIADB_115], "unicode_ci", "utf8mb4_bin"),
        # A default that is known is joined by its name.
        ([MYSQL_57], "general_ci", "utf8mb4_general_ci"),
        ([MYSQL_80], "0900_as_cs", "utf8mb4_0900_as_cs"),
        ([MYSQL_57], "0900_as_cs", "utf8mb4_0900_bin"),
        ([MARIADB_115], "uca1400_as_ci", "utf8mb4_uca1400_as_ci"),
    ],
)
def test_no_collation_stands_for_the_servers_defaults(
    defaults: list[str], other: str, joined: str
) -> None:
    found = [NONE, ("utf8mb4", f"utf8mb4_{other}")]
    assert joined_collation("utf8mb4", found, defaults) == joined
    assert joined_collation("utf8mb4", found[::-1], defaults) == joined


def test_where_all_say_none_each_server_keeps_its_own() -> None:
    assert joined_collation("utf8mb4", [NONE], [MYSQL_57, MYSQL_80]) == ""
    assert joined_collation("utf8mb4", [NONE, ("utf8mb3", "")], [MYSQL_57]) == ""


@pytest.mark.parametrize("defaults", [[], [MYSQL_57], [MARIADB_115]])
def test_the_default_of_utf8mb3_pads_everywhere(defaults: list[str]) -> None:
    found = [("utf8mb3", ""), ("utf8mb4", "utf8mb4_unicode_ci")]
    assert joined_collation("utf8mb4", found, defaults) == "utf8mb4_bin"
    found[1] = ("utf8mb4", "utf8mb4_general_ci")
    same = "utf8mb4_bin" if MARIADB_115 in defaults else "utf8mb4_general_ci"
    assert joined_collation("utf8mb4", found, defaults) == same
