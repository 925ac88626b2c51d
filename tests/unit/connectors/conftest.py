"""A scripted Connect worker, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from tests.unit.connectors.worker import Worker, running_worker


@pytest.fixture
def worker() -> Iterator[Worker]:
    with running_worker() as worker:
        yield worker


@pytest.fixture
def rest(worker: Worker) -> Iterator[ConnectRest]:
    rest = ConnectRest(worker.url, patience_s=5.0)
    yield rest
    rest.close()
