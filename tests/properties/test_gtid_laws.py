"""Sets of GTIDs keep the laws of sets."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from shardmerge.connectors.binlog.gtids import Gtids, MariaDbGtids, MySqlGtids, gtids_of, precedes

UUIDS = ("84ffc6e9-e7f5-11f1-b328-02fc00000001", "a12b3f1c-e7f7-11f1-b0cd-02fc00000001")
MYSQL = st.builds(
    "{}{}:{}".format, st.sampled_from(UUIDS), st.sampled_from(("", ":tag")), st.integers(1, 12)
)
MARIADB = st.builds(
    "{}-{}-{}".format, st.integers(0, 2), st.integers(1, 2), st.integers(1, 12)
)  # fmt: skip
EMPTY: tuple[Gtids, ...] = (MySqlGtids({}), MariaDbGtids({}))


def made(gtids: list[str], begin: Gtids) -> Gtids:
    return reduce(lambda known, gtid: known.adding(gtid), gtids, begin)


def is_within(one: Gtids, other: Gtids) -> bool:
    if isinstance(one, MySqlGtids):
        return isinstance(other, MySqlGtids) and one.within(other)
    return isinstance(other, MariaDbGtids) and one.within(other)


LISTS = st.one_of(
    st.tuples(st.lists(MYSQL), st.lists(MYSQL), st.just(EMPTY[0])),
    st.tuples(st.lists(MARIADB), st.lists(MARIADB), st.just(EMPTY[1])),
)


@given(st.lists(MYSQL), MYSQL)
def test_a_set_of_mysql_has_exactly_what_was_added(gtids: list[str], other: str) -> None:
    assert made(gtids, EMPTY[0]).has(other) == (other in gtids)


@given(st.lists(MARIADB), MARIADB)
def test_a_set_of_mariadb_has_what_is_not_behind_what_was_added(
    gtids: list[str], other: str
) -> None:
    domain, _, number = other.split("-")
    reached = [int(g.split("-")[2]) for g in gtids if g.split("-")[0] == domain]
    assert made(gtids, EMPTY[1]).has(other) == (int(number) <= max(reached, default=0))


@given(LISTS)
def test_the_order_of_adding_and_adding_twice_change_nothing(
    lists: tuple[list[str], list[str], Gtids],
) -> None:
    gtids, more, empty = lists
    whole, turned = made(gtids + more, empty), made(more + gtids, empty)
    assert is_within(turned, whole) and is_within(whole, turned)
    assert made(gtids + more, whole) == whole


@given(st.lists(MYSQL).flatmap(lambda own: st.tuples(st.just(own), st.permutations(own))))
def test_equal_sets_of_mysql_have_one_form(lists: tuple[list[str], list[str]]) -> None:
    one, other = (made(gtids, EMPTY[0]) for gtids in lists)
    assert one == other and str(one) == str(other)


@given(LISTS)
def test_a_written_set_is_read_again(lists: tuple[list[str], list[str], Gtids]) -> None:
    gtids, _, empty = lists
    whole = made(gtids, empty)
    assert gtids_of(str(whole)) == (whole if gtids else None)
    assert gtids_of(", ".join(gtids)) == (whole if gtids else None)


@given(LISTS)
def test_a_set_is_within_itself_and_within_what_has_more(
    lists: tuple[list[str], list[str], Gtids],
) -> None:
    gtids, more, empty = lists
    part, whole = made(gtids, empty), made(gtids + more, empty)
    assert is_within(part, part) and is_within(part, whole) and is_within(empty, part)
    assert all(whole.has(gtid) for gtid in gtids + more)
    adds = any(not part.has(gtid) for gtid in more)
    assert precedes(part, whole) == adds == (not is_within(whole, part))


@given(LISTS)
def test_within_is_having_all(lists: tuple[list[str], list[str], Gtids]) -> None:
    gtids, others, empty = lists
    one, other = made(gtids, empty), made(others, empty)
    assert is_within(one, other) == all(other.has(gtid) for gtid in gtids)
    if is_within(one, other) and is_within(other, one):
        assert not precedes(one, other) and not precedes(other, one)
    assert not (precedes(one, other) and precedes(other, one))
