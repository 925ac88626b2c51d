"""How far this worker's agents are behind their topics, as metrics.

An end offset alone does not tell: Debezium's transactions leave markers behind the last record,
which no agent ever gets. So once all that the consumer has read is completed, its position
counts as reached.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from aiokafka.errors import KafkaError
from faust.exceptions import ConsumerNotStarted

from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.family import Sample

from .delivery import Carrier

_PATIENCE_S = 2.0


def lag(end: int, position: int, read: int | None, next_offset: int | None) -> int:
    """How many offsets of a partition are not completed.

    Args:
        end: The offset behind the partition's last record or marker.
        position: The offset from which the consumer fetches next; it is behind markers.
        read: The last record that the consumer handed on; None: no record yet.
        next_offset: The offset from which the agent has completed nothing; None: no record yet.
    """
    waits = read is not None and next_offset is not None and next_offset <= read
    reached = next_offset if waits and next_offset is not None else position
    return max(0, end - reached)


class AgentLags:
    """The lag of each topic that this worker has taken over.

    Args:
        app: Faust's.
        carriers: Agent → what carries its records.
        agent_of: Topic → the agent that reads it; None for topics of no agent.
    """

    def __init__(
        self,
        app: Any,
        carriers: Mapping[str, Carrier],
        agent_of: Callable[[str], str | None],
    ) -> None:
        self._app, self._carriers, self._agent_of = app, carriers, agent_of

    async def samples(self) -> list[Sample]:
        """The metrics now; those of partitions about which the consumer says nothing are left out.

        To be asked while the agents consume.
        """
        lags: Counter[tuple[str, str]] = Counter()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                for tp in sorted(self._app.consumer.assignment()):
                    if tp not in self._app.consumer.assignment():
                        continue  # it has gone to another worker meanwhile
                    agent = self._agent_of(tp.topic)
                    if agent is None or (end := self._app.consumer.highwater(tp)) is None:
                        continue
                    position = await self._app.consumer.position(tp)
                    read = self._app.monitor.tp_read_offsets.get(tp)
                    at = self._carriers[agent].next_offsets.get((tp.topic, tp.partition))
                    lags[agent, tp.topic] += lag(end, position, read, at)
        except (TimeoutError, KafkaError, ConsumerNotStarted):
            # The group rebalances, or Kafka is slow: the other partitions have no sample this time.
            pass
        return [Sample(catalog.AGENTS_LAG, labels, behind) for labels, behind in lags.items()]
