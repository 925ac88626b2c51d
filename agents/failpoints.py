"""Places where a worker kills itself, for tests of what a crash leaves behind.

Off unless ``SHARDMERGE_AGENTS_FAILPOINT`` names one: ``<agent>.<place>:<passing>``, such as
``tracker.after-send:3``. At that passing the worker is gone as by ``kill -9``: nothing is flushed.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from typing import TypeAlias

from shardmerge.schemas.errors import ConfigError

Passed: TypeAlias = Callable[[str], None]
"""Called with the name of each place when a record comes by."""

AGENTS = ("tracker", "coordinator")
PLACES = (
    "before-put", "after-put", "after-settle", "before-send", "after-send", "before-ack",
    "after-ack",
)  # fmt: skip
"""In the order in which ``delivery`` passes them; a record passes some more than once."""

_FORM = re.compile(r"(\w+)\.([\w-]+):([1-9]\d*)")


def nowhere(place: str) -> None:
    """No place ends the worker."""


def failpoint(text: str, agent: str) -> Passed:
    """What an agent calls at each place.

    Args:
        text: The setting; empty for none.
        agent: One of ``AGENTS``.

    Raises:
        ConfigError: Not of that form, or no such place.
    """
    if not text:
        return nowhere
    form = _FORM.fullmatch(text)
    if form is None or form[1] not in AGENTS or form[2] not in PLACES:
        raise ConfigError(
            f"no failpoint: {text!r}",
            hint="write AGENT.PLACE:PASSING, such as tracker.after-send:3; agents: "
            f"{', '.join(AGENTS)}; places: {', '.join(PLACES)}",
        )
    if form[1] != agent:
        return nowhere
    name, left = form[2], int(form[3])

    def passed(place: str) -> None:
        nonlocal left
        left -= place == name
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    return passed
