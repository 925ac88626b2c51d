"""Runs independent parts of a plan side by side: each in a process that is forked for it.

A forked process has everything that this one knows, so only the result is sent. Planning is pure:
two processes do not disturb each other.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Final, Generic, TypeVar

from shardmerge.schemas.model.errors import ShardMergeError

_Result = TypeVar("_Result")

_FORK: Final = "fork"


def processors() -> int:
    """How many processes can run side by side.

    1 on other systems than Linux: there a process that was forked can lack what its libraries need.
    """
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


class Beside(Generic[_Result]):
    """Work that runs in a process of its own, from now on.

    Args:
        work: Must change nothing outside. Its result is pickled.
    """

    def __init__(self, work: Callable[[], _Result]) -> None:
        self._work = work
        context = multiprocessing.get_context(_FORK)
        self._receiving, sending = context.Pipe(duplex=False)
        self._process: BaseProcess = context.Process(
            target=_answer, args=(work, sending), daemon=True
        )
        self._process.start()
        sending.close()

    def result(self) -> _Result:
        """The result. Call it once.

        A process that ends without an answer, since memory was short for example, is no error: the
        work is done here.

        Raises:
            ShardMergeError: As the work raises it.
        """
        try:
            found, error = self._receiving.recv()
        except EOFError:
            return self._work()
        finally:
            self.stop()
        if error is not None:
            raise error
        result: _Result = found
        return result

    def stop(self) -> None:
        """End the process, whether it has answered or not."""
        self._receiving.close()
        self._process.kill()
        self._process.join()


def side_by_side(works: Iterable[Callable[[], _Result]]) -> Generator[_Result]:
    """The results in the order of the works; as many run at once as there are processors.

    Raises:
        ShardMergeError: As a work raises it.
    """
    if (most := processors()) == 1:
        yield from (work() for work in works)
        return
    running: deque[Beside[_Result]] = deque()
    try:
        for work in works:
            if len(running) == most:
                yield running.popleft().result()
            running.append(Beside(work))
        while running:
            yield running.popleft().result()
    finally:
        for each in running:
            each.stop()


def _answer(work: Callable[[], object], to: Connection) -> None:
    try:
        found, error = work(), None
    except ShardMergeError as raised:
        found, error = None, raised
    to.send((found, error))
