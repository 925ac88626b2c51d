"""Whether a connector can go on at another server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.cli.moving.move_rules import NewServer, ServerBefore, lacking, move_findings
from shardmerge.connectors.binlog.gtids import gtids_of
from shardmerge.schemas.pipeline.settings import Source

A = "84ffc6e9-e7f5-11f1-b328-02fc00000001"
B = "a12b3f1c-e7f7-11f1-b0cd-02fc00000001"
SOURCE = Source("s1", "new", 3306, "u", "", 9001, version="8.0.43")
GOOD = {
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "gtid_mode": "ON",
    "server_id": "2",
    "version": "8.0.43",
    "sql_mode": "",
    "character_set_server": "utf8mb4",
    "read_only": "OFF",
}
MARIA = {key: value for key, value in GOOD.items() if key != "gtid_mode"} | {
    "version": "11.8.3-MariaDB-log",
    "gtid_domain_id": "2",
}


def before_with(executed: str, *, read_only: bool = True, server_id: str = "1") -> ServerBefore:
    return ServerBefore(gtids_of(executed), read_only, server_id)


def codes(
    read: str,
    executed: str,
    *,
    purged: str = "",
    left: str = "",
    abandon: bool = False,
    **variables: str,
) -> list[tuple[str, bool]]:
    new = NewServer(GOOD | variables, gtids_of(executed), gtids_of(purged))
    before = before_with(left) if left else None
    found = move_findings(SOURCE, gtids_of(read), new, before, abandon=abandon)
    return [(each.code, each.fault) for each in found]


def test_a_replica_that_has_everything_takes_over() -> None:
    assert codes(f"{A}:1-9", f"{A}:1-9,{B}:1-3", left=f"{A}:1-9") == []
    assert codes("", f"{A}:1-9") == [], "the connector has read nothing"
    assert codes(f"{A}:1-5", f"{A}:1-9", purged=f"{A}:1-5") == []


@pytest.mark.parametrize(
    ("case", "code", "text"),
    [
        ({"read": f"{A}:1-9", "executed": f"{A}:1-7"}, "SM-6601", f"{A}:8-9"),
        ({"read": f"{A}:1-9", "executed": f"{B}:1-7"}, "SM-6601", f"{A}:1-9"),
        (
            {"read": f"{A}:1-5", "executed": f"{A}:1-9,{B}:1-4", "purged": f"{A}:1-5,{B}:1-2"},
            "SM-6602",
            f"{B}:1-2",
        ),
        (
            {"read": f"{A}:1-5", "executed": f"{A}:1-7", "left": f"{A}:1-9"},
            "SM-6603",
            f"{A}:8-9",
        ),
    ],
)
def test_missing_transactions_are_named(case: dict[str, str], code: str, text: str) -> None:
    sets = {name: gtids_of(case.get(name, "")) for name in ("read", "executed", "purged")}
    new = NewServer(GOOD, sets["executed"], sets["purged"])
    before = before_with(case["left"]) if "left" in case else None
    (found,) = move_findings(SOURCE, sets["read"], new, before)
    assert (found.code, found.fault) == (code, True)
    assert found.text.endswith(text)


def test_what_only_the_server_before_has_may_be_given_up() -> None:
    found = codes(f"{A}:1-5", f"{A}:1-7", left=f"{A}:1-9", abandon=True)
    assert found == [("SM-6603", False)]


def test_a_server_before_that_still_takes_writes_is_told_and_refuses_nothing() -> None:
    new = NewServer(GOOD, gtids_of(f"{A}:1-9"), None)
    before = before_with(f"{A}:1-9", read_only=False)
    (found,) = move_findings(SOURCE, gtids_of(f"{A}:1-9"), new, before)
    assert (found.code, found.fault) == ("SM-6613", False)
    same = replace(before, server_id="2")
    assert move_findings(SOURCE, gtids_of(f"{A}:1-9"), new, same) == [], "by another name"


def test_settings_of_the_new_server_count() -> None:
    assert codes(f"{A}:1", f"{A}:1", binlog_row_image="MINIMAL") == [("SM-6102", True)]
    assert codes(f"{A}:1", f"{A}:1", read_only="ON") == [("SM-6606", True)]
    assert codes(f"{A}:1", f"{A}:1", gtid_mode="OFF_PERMISSIVE") == [("SM-6605", True)]
    assert codes(f"{A}:1", f"{A}:1", server_id="9001") == [("SM-6104", True)]


def maria(read: str, executed: str, *, purged: str = "", **variables: str) -> list[str]:
    source = replace(SOURCE, flavour="mariadb", version="11.8")
    new = NewServer(MARIA | variables, gtids_of(executed), gtids_of(purged))
    return [each.code for each in move_findings(source, gtids_of(read), new, None)]


def test_a_mariadb_replica_with_a_domain_of_its_own_takes_over() -> None:
    assert maria("1-1-9", "1-1-9") == []
    assert maria("1-1-9", "1-1-9,2-2-4") == []
    assert maria("1-1-9,2-2-4", "1-1-9,2-2-4", gtid_domain_id="2") == [], "a way back"


def test_a_mariadb_replica_with_its_predecessors_domain_does_not() -> None:
    assert maria("1-1-9", "1-1-9", gtid_domain_id="1") == ["SM-6604"], "before its first write"
    assert maria("1-1-9", "1-2-11", gtid_domain_id="1") == ["SM-6604"], "after it"


def test_mariadb_lacks_what_is_behind_in_a_domain() -> None:
    assert maria("1-1-9", "1-1-7") == ["SM-6601"]
    assert maria("1-1-9,3-1-1", "1-1-9") == ["SM-6601"]
    assert maria("1-1-9", "1-1-12", purged="1-1-11") == ["SM-6602"]
    assert maria("1-1-9", "1-1-12", purged="1-1-4") == []


def test_sets_of_two_flavours_have_nothing_in_common() -> None:
    assert lacking(gtids_of("1-1-9"), gtids_of(f"{A}:1-9")) == "1-1-9"
    assert lacking(gtids_of(f"{A}:1-9"), gtids_of("1-1-9")) == f"{A}:1-9"
    assert lacking(None, None) == ""
