"""The places at which ``SHARDMERGE_AGENTS_FAILPOINT`` can kill a worker, as ``connectors`` does it.

Named ``<agent>.<place>:<passing>``, such as ``tracker.after-send:3``; with ``:stop`` behind it the
worker stands still there.
"""

from __future__ import annotations

from shardmerge.connectors.failpoints import Passed, failpoint, nowhere

AGENTS = ("tracker", "coordinator")
PLACES = (
    "before-put", "after-put", "after-settle", "before-send", "after-send", "before-ack",
    "after-ack",
)  # fmt: skip
"""In the order in which ``delivery`` passes them; a record passes some more than once."""


def agent_failpoint(text: str, agent: str) -> Passed:
    """What an agent calls at each of ``PLACES``.

    Args:
        text: The setting; empty for none.
        agent: One of ``AGENTS``.

    Raises:
        ConfigError: It names no place.
    """
    passed = failpoint(text, [f"{name}.{place}" for name in AGENTS for place in PLACES])
    if not text.startswith(f"{agent}."):
        return nowhere
    return lambda place: passed(f"{agent}.{place}")
