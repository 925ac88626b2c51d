from __future__ import annotations

from dataclasses import replace
from typing import Any

from shardmerge.agents.status.validations import (
    NEVER,
    OLD_MS,
    ValidationLog,
    ValidationView,
    is_before_statement,
    is_old,
    repairs,
    rows_differ,
    shortcomings,
)
from shardmerge.schemas.records.validations import TargetValidation, record_keys
from tests.example_pages import ITEMS, ORDERS, example, orders

EQUAL = TargetValidation(ORDERS, 3, 1_000, 2_000, True, 30, 2)
DIFFERS = replace(EQUAL, missing=1, extra=2, since_ms=1_500)
EARLY = replace(EQUAL, ended_ms=3_000, complete=False, stopped="no patience")
FAILED = replace(EARLY, stopped="source s1: gone", code="SM-4411")
SOME = replace(EQUAL, ended_ms=3_000, only=(orders(1),))


def known(*records: TargetValidation) -> ValidationView:
    log = ValidationLog()
    for record in records:
        log.add(record)
    return log.of(ORDERS)


def test_of_a_target_that_was_never_compared_nothing_is_known():
    log = ValidationLog()
    log.add(EQUAL)
    assert log.of(ITEMS) is NEVER
    assert (NEVER.state, NEVER.latest, NEVER.since_ms) == ("never", None, 0)


def test_after_its_tombstones_nothing_is_known_of_a_target():
    log = ValidationLog()
    for record in (DIFFERS, EARLY, replace(EQUAL, target=ITEMS)):
        log.add(record)
    for key in record_keys(ORDERS):
        log.forget(key)
    assert log.of(ORDERS) is NEVER
    assert log.of(ITEMS).state == "equal"
    log.add(EARLY)
    assert (log.of(ORDERS).whole, log.of(ORDERS).later) == (None, EARLY)


def test_the_latest_comparison_of_all_rows_counts():
    assert known(DIFFERS).state == "differs"
    assert known(DIFFERS, replace(EQUAL, ended_ms=3_000)).state == "equal"
    assert known(EQUAL, replace(DIFFERS, ended_ms=3_000)).since_ms == 1_500


def test_differences_stay_until_all_rows_were_compared_again():
    for later in (EARLY, FAILED, SOME):
        found = known(DIFFERS, later)
        assert (found.state, found.telling, found.latest) == ("differs", DIFFERS, later)
    assert known(DIFFERS, EARLY).is_later_incomplete
    assert not known(DIFFERS, SOME).is_later_incomplete


def test_a_comparison_of_some_rows_tells_its_differences_at_once():
    found = known(EQUAL, replace(SOME, differs=7, since_ms=2_900))
    assert (found.state, found.since_ms) == ("differs", 2_900)
    assert found.telling is not None
    assert found.telling.differs == 7


def test_a_comparison_of_all_rows_ends_what_was_known_before_in_any_order():
    last = replace(EQUAL, ended_ms=4_000)
    assert known(EARLY, last) == known(last, EARLY) == ValidationView(last)
    assert known(SOME, EQUAL).later == SOME  # the records of two keys come in any order


def test_the_state_says_why_a_comparison_proves_nothing():
    assert known(EQUAL, FAILED).state == "failed"
    assert known(EQUAL, EARLY).state == "incomplete"
    assert known(SOME).state == "incomplete"
    assert known(replace(EQUAL, obstacles=1)).state == "incomplete"
    assert known(EQUAL, SOME).state == "equal"


def test_a_comparison_from_before_a_statement_is_told():
    target = example().view.target(str(ORDERS))
    assert target is not None
    latest = next(each.version for each in target.decisions if each.statements)
    before, after = replace(EQUAL, version=latest - 1), replace(EQUAL, version=latest)
    assert is_before_statement(before, target.decisions)
    assert not is_before_statement(after, target.decisions)
    assert not is_before_statement(replace(EQUAL, version=0), target.decisions)


def test_a_comparison_gets_old():
    assert not is_old(EQUAL, 2_000 + OLD_MS)
    assert is_old(EQUAL, 2_001 + OLD_MS)


def test_differences_are_told_in_words():
    assert rows_differ(DIFFERS) == "3 rows differ: 1 missing, 2 that no shard has"
    assert rows_differ(replace(EQUAL, differs=1)) == "1 row differs: 1 with other values"


def test_what_a_comparison_does_not_tell_is_named():
    assert shortcomings(EQUAL) == ()
    assert shortcomings(replace(FAILED, obstacles=2, in_doubt=1, unsettled=1)) == (
        "SM-4411: source s1: gone",
        "2 shards could not be compared",
        "1 row looks different, which is not confirmed",
        "1 row changed each time that it was read",
    )
    assert shortcomings(replace(EQUAL, complete=False)) == ("it did not compare all rows",)
    many = replace(SOME, only=tuple(orders(n) for n in range(5)))
    assert shortcomings(many)[0].endswith("orders_2 and 2 more")


def test_only_what_helps_is_offered():
    call = "shardmerge validate merged.orders --pipeline FILE"

    def ways(**found: Any) -> list[str]:
        return [way.command for way in repairs(replace(EQUAL, **found))]

    reread, sql = f"{call} --repair reread", f"{call} --repair sql"
    assert ways(missing=1) == ways(differs=1) == [reread, call]
    assert ways(extra=1) == ways(count=1) == [sql, call]
    assert ways(missing=1, extra=1) == [reread, sql, call]
