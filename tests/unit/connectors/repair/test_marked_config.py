"""The mark in a connector's configuration while a repair is at work."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.repair.marked_config import MARK, MarkedConfig
from tests.unit.connectors.worker import Worker, running_worker

CONFIG = {"name": "c", "max.queue.size": "8192", "tasks.max": "1"}
SMALL = {"max.queue.size": "2", "max.batch.size": "1"}
PATH = "/connectors/c/config"


@pytest.fixture
def worker() -> Iterator[Worker]:
    with running_worker() as worker:
        worker.on("PUT", PATH, (200, {}))
        yield worker


@pytest.fixture
def marked(worker: Worker) -> Iterator[MarkedConfig]:
    rest = ConnectRest(worker.url, patience_s=5.0)
    yield MarkedConfig(rest, "c")
    rest.close()


def has(worker: Worker, config: dict[str, str]) -> None:
    worker.on("GET", PATH, (200, config))


def sent(worker: Worker) -> dict[str, str]:
    """The configuration that was sent last, which Connect then has."""
    config = [body for method, _, body in worker.requests if method == "PUT"][-1]
    assert isinstance(config, dict)
    has(worker, config)
    return config


def test_a_connector_without_a_mark_is_not_marked(worker: Worker, marked: MarkedConfig) -> None:
    assert not marked.is_marked()
    has(worker, CONFIG)
    assert not marked.is_marked()


def test_what_is_changed_is_kept_in_the_mark(worker: Worker, marked: MarkedConfig) -> None:
    has(worker, CONFIG)
    marked.change(SMALL)
    config = sent(worker)
    assert {k: v for k, v in config.items() if k != MARK} == {**CONFIG, **SMALL}
    assert json.loads(config[MARK]) == {"max.queue.size": "8192", "max.batch.size": None}
    assert marked.is_marked()


def test_restored_it_is_as_before(worker: Worker, marked: MarkedConfig) -> None:
    has(worker, CONFIG)
    marked.change(SMALL)
    sent(worker)
    marked.restore()
    assert sent(worker) == CONFIG
    assert not marked.is_marked()


def test_a_second_change_keeps_what_was_before_the_first(
    worker: Worker, marked: MarkedConfig
) -> None:
    has(worker, CONFIG)
    for values in ({}, {"max.queue.size": "2"}, {"max.queue.size": "9", "tasks.max": "3"}):
        marked.change(values)
        sent(worker)
    marked.restore()
    assert sent(worker) == CONFIG


def test_an_equal_change_is_not_sent_again(worker: Worker, marked: MarkedConfig) -> None:
    has(worker, CONFIG)
    for _ in range(3):
        marked.change(SMALL)
        sent(worker)
    assert len(worker.asked("PUT")) == 1


def test_a_mark_alone_changes_nothing_else(worker: Worker, marked: MarkedConfig) -> None:
    has(worker, CONFIG)
    marked.change({})
    assert sent(worker) == {**CONFIG, MARK: "{}"}
    assert marked.is_marked()


def test_a_configuration_without_a_mark_is_not_put_again(
    worker: Worker, marked: MarkedConfig
) -> None:
    has(worker, CONFIG)
    marked.restore()
    assert worker.asked("PUT") == []


def test_another_process_restores_what_this_one_changed(
    worker: Worker, marked: MarkedConfig
) -> None:
    kept = {"max.queue.size": "8192", "max.batch.size": None}
    has(worker, {**CONFIG, **SMALL, MARK: json.dumps(kept)})
    assert marked.is_marked()
    marked.restore()
    assert sent(worker) == CONFIG
