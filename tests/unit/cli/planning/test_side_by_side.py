"""Parts of a plan in processes of their own: results, errors, a process that dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import closing

import pytest

from shardmerge.cli.planning import side_by_side as module
from shardmerge.cli.planning.side_by_side import Beside, side_by_side
from shardmerge.schemas.model.errors import ConfigError


@pytest.fixture(params=[1, 2], ids=["one processor", "two"])
def processors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(module, "processors", lambda: request.param)
    found: int = request.param
    return found


def test_results_come_in_the_order_of_the_works(processors: int) -> None:
    base = 10
    works = [lambda n=n: (base + n, os.getpid()) for n in range(5)]

    found = list(side_by_side(works))

    assert [number for number, _ in found] == [10, 11, 12, 13, 14]
    assert len({pid for _, pid in found}) == (1 if processors == 1 else 5)
    assert (os.getpid() in {pid for _, pid in found}) == (processors == 1)


def refuses() -> int:
    raise ConfigError("no such setting", hint="take another", code="SM-5601")


def test_an_error_comes_as_the_work_raises_it(processors: int) -> None:
    with pytest.raises(ConfigError) as error:
        list(side_by_side([lambda: 1, refuses, lambda: 3]))
    assert str(error.value) == "SM-5601: no such setting (take another)"
    assert (error.value.hint, error.value.code) == ("take another", "SM-5601")


def test_no_process_is_left_when_nobody_wants_more_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "processors", lambda: 3)
    begun: list[int] = []

    def waits() -> None:
        signal.pause()

    class Noted(Beside[None]):
        def __init__(self, work: Callable[[], None]) -> None:
            super().__init__(work)
            begun.append(self._process.pid or 0)

    monkeypatch.setattr(module, "Beside", Noted)
    with closing(side_by_side([lambda: None, waits, waits, waits])) as found:
        next(found)
    for pid in begun:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert len(begun) == 3


def test_the_work_of_a_process_that_dies_is_done_here() -> None:
    parent = os.getpid()

    def works() -> str:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return "done"

    assert Beside(works).result() == "done"
