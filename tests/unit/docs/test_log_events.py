"""Every log call has a literal event and named fields, and the page says what both mean."""

from __future__ import annotations

import re
from functools import cache

import pytest

from docs import log_events
from docs.log_events import FORM, NAME, PACKAGES, ROOT, Event, UnclearCall, events_in, meanings
from shardmerge.connectors.log_lines import STANDARD

logged_events = cache(log_events.logged_events)
"""The whole tree is read once for all tests."""
_ADDED = {"error_type", "exception", "message"}
"""Fields that no call names: the formatter adds them."""


def test_every_event_of_the_tree_has_a_meaning_and_every_meaning_an_event():
    assert {event.name for event in logged_events()} | {"library_logged"} == set(meanings().events)


def test_every_field_of_the_tree_has_a_meaning_and_every_meaning_a_field():
    used = {field for event in logged_events() for field in event.fields}
    assert used | _ADDED == set(meanings().fields)
    assert not used & {*STANDARD, *_ADDED}, "a key of the line's own"


def test_an_event_has_one_level():
    levels: dict[str, set[str]] = {}
    for event in logged_events():
        levels.setdefault(event.name, set()).add(event.level)
    assert {name: found for name, found in levels.items() if len(found) > 1} == {}
    assert {level for found in levels.values() for level in found} <= {
        "debug", "info", "warning", "error",
    }  # fmt: skip


def test_the_page_lists_every_event_with_its_level_fields_and_meaning():
    page = (ROOT / "docs/reference/log-events.md").read_text(encoding="utf-8")
    rows = {row.split("`")[1]: row for row in page.splitlines() if row.startswith("| `")}
    for event in logged_events():
        row = rows[event.name]
        assert f"| {event.level} |" in row
        assert all(re.search(rf"\b{field}\b", row) for field in event.fields)
        assert meanings().events[event.name] in row


def test_only_two_modules_make_loggers_and_handlers():
    made = re.compile(r"getLogger|basicConfig|dictConfig|import structlog|from structlog")
    found = {
        (path.relative_to(ROOT).as_posix(), line.strip())
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if made.search(line)
    }
    others = {each for each in found if each[0] not in FORM}
    assert others == {
        (
            "connectors/sources/source_binlog.py",
            'logging.getLogger("pymysqlreplication").setLevel(logging.ERROR)',
        )
    }


def test_the_how_to_pages_name_only_events_that_exist():
    known = {event.name for event in logged_events()} | {"library_logged"}
    nouns = {name.partition("_")[0] for name in known}
    verbs = {"begun", "ended", "failed", "held", "refused", "restarted", "repaired", "up", "fitted"}
    named = {
        (page.name, word)
        for page in (ROOT / "docs/how-to").glob("*.md")
        for word in re.findall(r"`(\w+)`", page.read_text(encoding="utf-8"))
        if word.partition("_")[0] in nouns and word.rpartition("_")[2] in verbs
    }
    assert len(named) > 8
    assert {(page, word) for page, word in named if word not in known} == set()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("log.info('shard held')", "no noun_verb|not a noun_verb"),
        ("log.info('held')", "not a noun_verb"),
        ("log.info('shardHeld_again')", "not a noun_verb"),
        ("log.info(name)", "no literal"),
        ("log.info(f'shard_{what}')", "no literal"),
        ("self.log.warning('shard_held %s', shard)", "only argument"),
        ("_LOG.error('shard_held', **facts)", "one by one"),
        ("log.bind(**facts).error(event)", "no literal"),
        ("log.log(20, 'shard_held')", "only argument"),
    ],
)
def test_a_call_that_cannot_be_read_is_refused(text: str, fault: str):
    with pytest.raises(UnclearCall, match=rf"agents/x\.py:1: .*({fault})"):
        list(events_in(text, "agents/x.py"))


def test_a_call_is_read():
    text = "log.exception('a_b' if x else 'c_d', shard=s, seconds=1)\nmath.log(2)\nclick.info('x')"
    assert list(events_in(text, "agents/x.py")) == [
        Event("a_b", "agents", "error", ("shard", "seconds")),
        Event("c_d", "agents", "error", ("shard", "seconds")),
    ]
    assert NAME.fullmatch("whole_reading_begun")
