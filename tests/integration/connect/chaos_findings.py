"""What a failure of a source looks like: trace, committed offset, last records, watchdog's log."""

from __future__ import annotations

from collections.abc import Sequence

from shardmerge.connectors.debezium.source_config import schema_history_topic
from shardmerge.local.install.files import tail

from .chaos_line import ChaosLine, connector_facts
from .chaos_schemas import last_records

_RECORDS = 4
_WIDTH = 1000
"""Of a line: a parser's message names every word that it knows."""


def findings(line: ChaosLine, case: str, gtid: bool, outcome: str, told: Sequence[str]) -> str:
    """The facts about a line as it stands now, as text.

    Args:
        line: The source.
        case: What was played.
        gtid: Whether transactions have GTIDs.
        outcome: What came of it.
        told: What was found wrong.
    """
    servers = line.stack.bootstrap_servers
    history = schema_history_topic(line.pipeline, line.pipeline.sources[0])
    facts = connector_facts(line)
    parts = [
        f"===== {case}, GTIDs {'on' if gtid else 'off'}, {line.context}: {outcome}",
        *told[:20],
        f"state: {facts['state']}",
        f"offset: {facts['offset']}",
        "trace:",
        str(facts["trace"]),
        f"last records of {history}:",
        *last_records(servers, history, _RECORDS),
        f"last records of {line.source}:",
        *last_records(servers, line.source, _RECORDS),
        "watchdog:",
        tail(line.log),
    ]
    lines = [line for part in parts for line in part.splitlines()]
    return "\n".join(
        line[:_WIDTH] for line in lines if not line.lstrip().startswith(("at ", "... "))
    )
