from __future__ import annotations

import pytest

from shardmerge.spark_sink.loading.replica_rules import (
    Committed,
    Row,
    has_come,
    show_replication,
    wait_for,
    why_not_a_replica,
)

from .loads import at

MYSQL: Row = {"source_uuid": "a-1", "replicate_do_db": "", "replicate_ignore_table": None}
MARIADB: Row = {"master_server_id": "7", "replicate_do_db": ""}


def test_a_server_that_follows_the_source_may_be_read() -> None:
    assert why_not_a_replica("a-1", "b-2", [{"source_uuid": "c-3"}, MYSQL]) == ""
    assert why_not_a_replica("a-1", "b-2", [{"master_uuid": "a-1"}]) == ""
    assert why_not_a_replica("7", "8", [MARIADB]) == ""


def test_another_server_may_not() -> None:
    assert why_not_a_replica("a-1", "a-1", [MYSQL]) == "it is the source itself"
    assert "does not replicate from" in why_not_a_replica("a-1", "b-2", [])
    assert "does not replicate from" in why_not_a_replica("a-1", "b-2", [{"source_uuid": "c-3"}])
    filtered = {**MYSQL, "replicate_do_db": "app"}
    assert why_not_a_replica("a-1", "b-2", [filtered]).endswith("replicate_do_db is app")


@pytest.mark.parametrize(
    ("version", "mariadb", "word"),
    [
        ("8.0.21", False, "SHOW SLAVE STATUS"),
        ("5.7.44-log", False, "SHOW SLAVE STATUS"),
        ("8.0.22", False, "SHOW REPLICA STATUS"),
        ("9.7.0-commercial", False, "SHOW REPLICA STATUS"),
        ("10.11.6-MariaDB", True, "SHOW ALL SLAVES STATUS"),
    ],
)
def test_the_server_is_asked_in_its_own_words(version: str, mariadb: bool, word: str) -> None:
    assert show_replication(version, mariadb=mariadb) == word


def test_what_is_waited_for() -> None:
    gtids, place = Committed("a-1:1-9", at(40)), Committed("", at(40))
    assert wait_for(gtids, "8.0.36", 5, mariadb=False) == (
        "SELECT WAIT_FOR_EXECUTED_GTID_SET('a-1:1-9', 5)"
    )
    assert wait_for(Committed("0-1-9", at(40)), "10.11.6", 5, mariadb=True) == (
        "SELECT MASTER_GTID_WAIT('0-1-9', 5)"
    )
    assert wait_for(place, "8.0.36", 5, mariadb=False) == (
        "SELECT SOURCE_POS_WAIT('binlog.000001', 40, 5)"
    )
    assert wait_for(place, "5.7.44", 5, mariadb=False).startswith("SELECT MASTER_POS_WAIT(")


def test_whether_it_has_come() -> None:
    gtids, place = Committed("a-1:1-9", at(40)), Committed("", at(40))
    assert has_come(gtids, "0") and has_come(place, "0") and has_come(place, "1")
    assert not has_come(gtids, "1"), "the time was over"
    assert not has_come(gtids, None) and not has_come(place, "-1") and not has_come(place, None)
