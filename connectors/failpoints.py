"""Places where a process kills itself, for tests of what a crash leaves behind.

They are off unless a setting names one: ``<place>:<passing>``. When the process passes the place
for the time with that number, it ends as by ``kill -9``, without flushing anything. With ``:stop``
behind it the process stands still there, as by ``kill -STOP``, until it gets SIGCONT.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Sequence
from typing import TypeAlias

from shardmerge.schemas.model.errors import ConfigError

Passed: TypeAlias = Callable[[str], None]
"""Called with the name of each place when work comes by."""

_FORM = re.compile(r"([\w.-]+):([1-9]\d*)(:stop)?")


def nowhere(place: str) -> None:
    """No place ends the process."""


def failpoint(text: str, places: Sequence[str]) -> Passed:
    """What is called at each place.

    Args:
        text: The setting; empty for none.
        places: All there are.

    Raises:
        ConfigError: Not of that form, or no such place.
    """
    if not text:
        return nowhere
    form = _FORM.fullmatch(text)
    if form is None or form[1] not in places:
        raise ConfigError(
            f"no failpoint: {text!r}",
            hint=f"write PLACE:PASSING, such as {places[0]}:3; places: {', '.join(places)}",
            code="SM-5502",
        )
    name, left = form[1], int(form[2])
    what = signal.SIGSTOP if form[3] else signal.SIGKILL

    def passed(place: str) -> None:
        nonlocal left
        left -= place == name
        if place == name and not left:
            os.kill(os.getpid(), what)

    return passed
