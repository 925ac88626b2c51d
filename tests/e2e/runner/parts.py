"""Which part of the line an event means, and what is to happen to it, under all usual names."""

from __future__ import annotations

import re
from typing import NamedTuple

_VERBS = {
    "restart": "restart", "kill": "kill", "crash": "kill", "kill -9": "kill", "sigkill": "kill",
    "start": "start", "resume": "start", "stop": "stop", "pause": "stop",
}  # fmt: skip
_CONNECTOR = (
    "worker", "dm-worker", "dmworker", "connector", "task", "source task", "debezium", "replicator",
)  # fmt: skip
_PARTS = {
    **dict.fromkeys(_CONNECTOR, "connector"),
    **dict.fromkeys(("source", "mysql", "source server", "upstream", "server"), "source"),
    **dict.fromkeys(
        ("coordinator", "master", "dm-master", "dmmaster", "agents", "agent", "tracker", "faust",
         "scheduler", "leader", "schema tracker"), "agents",
    ),
    **dict.fromkeys(("sink", "spark", "driver", "syncer", "executor", "applier"), "sink"),
    **dict.fromkeys(("connect", "kafka connect", "kafka-connect", "connect worker"), "connect"),
    **dict.fromkeys(("kafka", "broker", "kafka broker"), "kafka"),
    **dict.fromkeys(("target", "downstream", "tidb", "target server", "sink database"), "target"),
}  # fmt: skip
_EVENT = re.compile(
    rf"(?P<verb>{'|'.join(sorted(_VERBS, key=len, reverse=True))})[\s_-]+(?:the[\s_-]+)?"
    r"(?P<part>[a-z][a-z _-]*?)?[\s_-]*(?:of[\s_-]+)?(?P<source>s?\d+)?",
    re.IGNORECASE,
)


class PartEvent(NamedTuple):
    """What happens to a part.

    Attributes:
        verb: ``restart``, ``kill``, ``stop`` or ``start``.
        part: ``connector``, ``source``, ``agents``, ``sink``, ``connect``, ``kafka``, ``target``.
        source: Which one (``s1``), of a connector or a source; "" is every one.
    """

    verb: str
    part: str
    source: str = ""


def part_event(text: str) -> PartEvent | None:
    """What a text asks for; None when it names no part that is known.

    ``restart_worker 2``, ``kill dm-worker2``, ``kill the sink``, ``stop source s1`` and ``kill
    kafka`` are such texts. A source that is stopped is not read any more; its server runs on.
    """
    found = _EVENT.fullmatch(" ".join(text.split()))
    if found is None:
        return None
    number = re.sub(r"\D", "", found["source"] or "")
    named = re.sub(r"[\s_]+", " ", found["part"] or "").strip(" -").lower()
    if named == "s" and number:  # ``stop s2`` names a source
        named = ""
    part = _PARTS.get(named) or _PARTS.get(named.removesuffix("s"))
    if not named and number:
        part = "source"
    if part is None:
        return None
    verb = _VERBS[found["verb"].lower()]
    if part == "source" and verb in ("stop", "start"):
        part = "connector"
    return PartEvent(verb, part, f"s{number}" if number else "")
