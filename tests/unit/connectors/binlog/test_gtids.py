"""Sets of GTIDs of MySQL and MariaDB."""

from __future__ import annotations

import pytest

from shardmerge.connectors.binlog.gtids import MariaDbGtids, MySqlGtids, gtids_of, precedes

A = "84ffc6e9-e7f5-11f1-b328-02fc00000001"
B = "a12b3f1c-e7f7-11f1-b0cd-02fc00000001"


def mysql(text: str) -> MySqlGtids:
    found = gtids_of(text)
    assert isinstance(found, MySqlGtids)
    return found


def mariadb(text: str) -> MariaDbGtids:
    found = gtids_of(text)
    assert isinstance(found, MariaDbGtids)
    return found


@pytest.mark.parametrize("text", ["", "  ", ",", "\n"])
def test_a_text_without_a_transaction_is_no_set(text: str) -> None:
    assert gtids_of(text) is None


@pytest.mark.parametrize("text", ["1-5", "uuid", f"{A}:1-5,0-1-7", "0-1-7,x"])
def test_a_text_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no GTID set"):
        gtids_of(text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (f"{A}:1", f"{A}:1"),
        (f"{A}:1-5", f"{A}:1-5"),
        (f"{A}:1-5:7", f"{A}:1-5:7"),
        (f"{A}:7:1-5", f"{A}:1-5:7"),
        (f"{A}:1-5:6:8-9", f"{A}:1-6:8-9"),
        (f"{A}:1-5:3-9", f"{A}:1-9"),
        (f"{A}:1-3,{A}:5", f"{A}:1-3:5"),
        (f"{A.upper()}:1-3", f"{A}:1-3"),
        (f"{B}:4,\n{A}:1-2", f"{A}:1-2,{B}:4"),
        (f"{A}:1-5:tag:1-3", f"{A}:1-5,{A}:tag:1-3"),
        (f"{A}:1-5:t1:2:t2:3:4", f"{A}:1-5,{A}:t1:2,{A}:t2:3-4"),
        ("0-1-5", "0-1-5"),
        ("1-2-7,0-1-5", "0-1-5,1-2-7"),
    ],
)
def test_a_set_is_written_in_one_form(text: str, written: str) -> None:
    assert str(gtids_of(text)) == written
    assert str(gtids_of(written)) == written


def test_a_set_has_what_is_in_its_intervals() -> None:
    gtids = mysql(f"{A}:1-5:7,{B}:2")
    assert [n for n in range(9) if gtids.has(f"{A}:{n}")] == [1, 2, 3, 4, 5, 7]
    assert [n for n in range(4) if gtids.has(f"{B}:{n}")] == [2]
    assert gtids.has(f"{A.upper()}:7")
    assert not gtids.has(f"{A}:tag:7")


def test_a_tag_has_numbers_of_its_own() -> None:
    gtids = mysql(f"{A}:1-5:tag:7")
    assert gtids.has(f"{A}:tag:7") and not gtids.has(f"{A}:tag:1") and not gtids.has(f"{A}:7")
    assert str(gtids.adding(f"{A}:tag:8")) == f"{A}:1-5,{A}:tag:7-8"


def test_what_is_added_closes_a_gap() -> None:
    assert str(mysql(f"{A}:1-5:7").adding(f"{A}:6")) == f"{A}:1-7"
    assert str(mysql(f"{A}:1-5").adding(f"{A}:9")) == f"{A}:1-5:9"
    assert str(mysql(f"{A}:1-5").adding(f"{B}:1")) == f"{A}:1-5,{B}:1"
    assert mysql(f"{A}:1-5").adding(f"{A}:3") == mysql(f"{A}:1-5")


@pytest.mark.parametrize("gtid", ["", A, f"{A}:", f"{A}:x", "0-1-7", f"{A}:1-5"])
def test_a_set_of_mysql_takes_no_other_gtid(gtid: str) -> None:
    with pytest.raises(ValueError, match="is no GTID of MySQL"):
        mysql(f"{A}:1").adding(gtid)


@pytest.mark.parametrize("gtid", ["", f"{A}:1", "0-1", "0-1-x"])
def test_a_set_of_mariadb_takes_no_other_gtid(gtid: str) -> None:
    with pytest.raises(ValueError, match="is no GTID of MariaDB"):
        mariadb("0-1-5").adding(gtid)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{A}:1-5", f"{A}:1-6"),
        (f"{A}:1-5:7", f"{A}:1-7"),
        (f"{A}:2-3", f"{A}:1-5"),
        (f"{A}:1-5", f"{A}:1-5,{B}:1"),
        (f"{A}:1-5", f"{A}:1-5:tag:1"),
        ("0-1-5", "0-1-6"),
        ("0-1-5", "0-2-6"),
        ("0-1-5", "0-1-5,1-1-1"),
    ],
)
def test_a_part_precedes_the_whole(one: str, other: str) -> None:
    a, b = gtids_of(one), gtids_of(other)
    assert a is not None and b is not None
    assert precedes(a, b) and not precedes(b, a) and not precedes(a, a)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{A}:1-5", f"{A}:1-5"),
        (f"{A}:1-5:7", f"{A}:1-6"),
        (f"{A}:1-5", f"{B}:1-9"),
        (f"{A}:1-5:tag:2", f"{A}:1-6:tag:1"),
        ("0-1-5", "0-1-5"),
        ("0-1-5,1-1-1", "0-1-6"),
        ("0-1-5", f"{A}:1-5"),
    ],
)
def test_of_sets_that_are_equal_or_beside_each_other_none_precedes(one: str, other: str) -> None:
    a, b = gtids_of(one), gtids_of(other)
    assert a is not None and b is not None
    assert not precedes(a, b) and not precedes(b, a)


def test_mariadb_has_what_is_at_or_before_the_last_of_its_domain() -> None:
    gtids = mariadb("0-1-5,2-1-3")
    assert gtids.has("0-1-5") and gtids.has("0-1-1") and gtids.has("0-9-4")
    assert not gtids.has("0-1-6") and not gtids.has("1-1-1") and not gtids.has("2-1-4")


def test_what_is_added_is_the_last_of_its_domain() -> None:
    gtids = mariadb("0-1-5")
    assert str(gtids.adding("0-2-6")) == "0-2-6"
    assert str(gtids.adding("1-1-1")) == "0-1-5,1-1-1"
    assert gtids.adding("0-2-4") == gtids


@pytest.mark.parametrize("text", ["0-1-5,0-2-7", "0-2-7,0-1-5"])
def test_the_last_of_a_domain_with_several_servers_has_the_highest_number(text: str) -> None:
    """A server's state names the last transaction of each server of a domain."""
    assert str(gtids_of(text)) == "0-2-7"


@pytest.mark.parametrize(
    ("one", "other", "both", "count"),
    [
        (f"{A}:1-5", f"{A}:3-9", f"{A}:1-9", 9),
        (f"{A}:1-5", f"{A}:6,{B}:7", f"{A}:1-6,{B}:7", 7),
        (f"{A}:1-5:8", f"{A}:t:1-2", f"{A}:1-5:8,{A}:t:1-2", 8),
    ],
)
def test_two_sets_make_one(one: str, other: str, both: str, count: int) -> None:
    assert str(mysql(one).union(mysql(other))) == str(mysql(other).union(mysql(one))) == both
    assert mysql(both).count == count


@pytest.mark.parametrize(
    ("some", "other", "left"),
    [
        (f"{A}:1-9", f"{A}:1-9", ""),
        (f"{A}:1-9", f"{A}:3-4:7", f"{A}:1-2:5-6:8-9"),
        (f"{A}:1-9", f"{A}:5-20", f"{A}:1-4"),
        (f"{A}:3-9", f"{A}:1-3", f"{A}:4-9"),
        (f"{A}:1:3:5", f"{A}:3", f"{A}:1:5"),
        (f"{A}:1-3,{B}:4", f"{A}:1-3", f"{B}:4"),
        (f"{A}:tag:1-3", f"{A}:1-3", f"{A}:tag:1-3"),
    ],
)
def test_what_another_set_has_is_taken_away(some: str, other: str, left: str) -> None:
    assert str(mysql(some).without(mysql(other))) == left


def test_mariadb_lacks_a_domain_as_a_whole() -> None:
    assert str(mariadb("0-1-5,1-2-7").without(mariadb("0-1-5,1-2-6"))) == "1-2-7"
    assert str(mariadb("0-1-5").without(mariadb("0-3-6"))) == ""
