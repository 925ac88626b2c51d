from __future__ import annotations

from shardmerge.agents.access import failures
from shardmerge.agents.access.failures import MOST, WINDOW_S, Failures


def test_an_address_is_heard_until_it_sent_too_many_wrong_tokens_and_again_after_the_window():
    found = Failures()
    for n in range(MOST):
        assert not found.are_too_many("a", 100.0 + n)
        found.note("a", 100.0 + n)
    assert found.are_too_many("a", 100.0 + WINDOW_S - 1)
    assert not found.are_too_many("b", 110.0)
    assert not found.are_too_many("a", 100.0 + WINDOW_S)
    found.note("a", 100.0 + WINDOW_S)
    assert not found.are_too_many("a", 100.0 + WINDOW_S)


def test_only_the_latest_addresses_are_kept(monkeypatch):
    monkeypatch.setattr(failures, "_MOST_ADDRESSES", 3)
    found = Failures()
    for _ in range(MOST):
        found.note("old", 1.0)
    assert found.are_too_many("old", 2.0)
    for n in range(3):
        found.note(f"new{n}", 2.0)
    assert not found.are_too_many("old", 2.0)
