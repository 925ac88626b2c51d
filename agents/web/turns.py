"""Runs what takes long in a thread, one call at a time, because the agents share this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Turns:
    """Calls that wait for each other here, such as those that read the agents' tables."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()

    async def ask(self, call: Callable[[], T]) -> T:
        """What ``call`` returns. It runs in a thread when no other call runs."""
        async with self._one:
            return await asyncio.to_thread(call)
