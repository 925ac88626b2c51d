"""Faust's transport and table recovery, without the defects that lose records.

The one place that reaches into Faust's and aiokafka's internals. Measured with faust-streaming
0.15.3 and aiokafka 0.14.0; ``tests/integration/agents`` forces the races.

What is mended, and what happened without it:

1. After a table recovery Faust resumes the source partitions, then seeks to the committed offsets,
   then clears the streams' queues, while the fetcher runs: records that were fetched in between
   are thrown away, and what follows them is committed. ``Recovery`` keeps the source partitions
   paused until nothing is in flight, and seeks while the flow is stopped.
2. aiokafka's seek to the committed offset does nothing for a partition that was never committed (or
   at 0): the fetch position stays wherever the first poll brought it. ``ConsumerThread`` seeks such
   source partitions to their beginning.
3. Faust reads uncommitted records unless it runs transactions itself. Debezium writes in
   transactions; ``ConsumerThread`` reads committed ones only.
4. A worker whose partitions are all taken away while it commits asks aiokafka to commit nothing,
   which is an error there, and Faust ends the worker. ``ConsumerThread`` commits nothing then.
5. A changelog record whose send failed is only logged. ``Table`` keeps the futures of what it sent,
   for ``delivery`` to await; ``producer.flush()`` gives up after 0.1 s and is no substitute.
6. A changelog record that is acknowledged late moves the stored offset of a partition that another
   worker has by then, past that worker's records. ``Table`` leaves the offset where it is.
7. Standby tables lose records in each rebalance. ``table_copies`` takes their place.
8. Faust gives the event loop a turn before each record that it sends, to ask whether the producer
   has started. So a hundred records that are sent together went out in forty requests. ``App`` asks
   only until it has started.
9. Faust makes the changelogs while the worker joins its group. If the brokers do not tell of them
   yet, the worker gets none of their partitions, its agents crash, and it may end. So they are made
   before (``changelogs``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import faust
import faust.tables.recovery
from faust.tables.manager import TableManager as FaustTableManager
from faust.tables.table import Table as FaustTable
from faust.transport.drivers import aiokafka as driver
from mode.utils.futures import stampede

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.pipeline.topics import MAX_RECORD_BYTES, TopicSpec

from .table_copies import TableCopies, others_partitions

log = logger(__name__)

IN_FLIGHT_POLL_S = 1.2
"""A poll of the fetcher ends after 1 s at most (``getmany(timeout=1.0)``), plus scheduling."""

FETCH_MAX_WAIT_MS = 50
"""How long a fetch waits for data. A fetch leaves out a partition whose records are just
being consumed; the next fetch, which includes it, starts only when this one has ended."""

SEGMENT_BYTES = 2 * MAX_RECORD_BYTES
"""Segment size of a changelog. A broker compacts closed segments only, and by default closes one at
1 GiB. With that, recovering a lost table read every put ever made, all records at hand included."""


class ConsumerThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    """Reads committed records, rewinds partitions that were never committed, commits its own."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # Faust has no settings for these two; both are read when the consumer starts.
        consumer._isolation_level = "read_committed"
        consumer._fetch_max_wait_ms = FETCH_MAX_WAIT_MS
        return consumer

    async def _commit(self, offsets: Mapping[Any, int]) -> bool:
        assigned = self.assignment()
        if not any(partition in assigned for partition in offsets):
            return False
        return bool(await super()._commit(offsets))

    async def seek_to_committed(self) -> Mapping[Any, int]:
        """Seek every source partition to where its consumption goes on.

        Returns:
            That offset by partition; the beginning where nothing was committed. Changelog
            partitions are where the recovery put them.
        """
        consumer = self._ensure_consumer()
        offsets: Mapping[Any, int] = await self.call_thread(self._seek_sources, consumer)
        return offsets

    async def _seek_sources(self, consumer: Any) -> Mapping[Any, int]:
        committed: dict[Any, int | None] = dict(await consumer.seek_to_committed())
        changelogs = self.app.tables.changelog_topics
        fresh = [tp for tp, at in committed.items() if not at and tp.topic not in changelogs]
        if fresh:
            beginnings = await consumer.beginning_offsets(fresh)
            for tp, offset in beginnings.items():
                consumer.seek(tp, offset)
                committed[tp] = offset
        return {tp: offset for tp, offset in committed.items() if offset is not None}


class Consumer(driver.Consumer):  # type: ignore[misc]
    """Faust's consumer on our thread."""

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def _to_message(self, tp: Any, record: Any) -> Any:
        message = super()._to_message(tp, record)
        message.empty_since = record.empty_since
        return message


class Transport(driver.Transport):  # type: ignore[misc]
    """Faust's transport with our consumer."""

    Consumer = Consumer


class Recovery(faust.tables.recovery.Recovery):  # type: ignore[misc]
    """Table recovery that hands over to the streams without losing a record."""

    before_seek: Callable[[], Any] | None = None
    """Test hook: awaited between the clearing and the seek, where the races were."""

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """Called by Faust when the active tables are restored."""
        log.info("tables_restored")
        await self.app.on_rebalance_complete.send()
        self._set_recovery_ended()
        callbacks = [
            asyncio.ensure_future(
                table.on_recovery_completed(
                    self.actives_for_table[table], self.standbys_for_table[table]
                )
            )
            for table in self.tables.values()
        ]
        if callbacks:
            await asyncio.wait(callbacks)
        await self._open_streams(generation_id)

    async def _resume_streams(self, generation_id: int = 0) -> None:
        """Called by Faust instead when there are no tables."""
        await self.app.on_rebalance_complete.send()
        await self._open_streams(generation_id)

    async def _open_streams(self, generation_id: int) -> None:
        """Let the sources flow from their committed offsets.

        1. The sources stay paused, so that no new poll asks for them.
        2. The flow stops. A poll that is under way ends within ``IN_FLIGHT_POLL_S``; what it
           brought is dropped, since the flow is stopped.
        3. The queues are cleared, the fetch positions set, and only then the flow opens.
        """
        app, consumer = self.app, self.app.consumer
        sources = {tp for tp in consumer.assignment() if not self._is_changelog_tp(tp)}
        consumer.pause_partitions(sources)
        consumer.stop_flow()
        await self._wait(asyncio.sleep(IN_FLIGHT_POLL_S))
        app.flow_control.resume()  # clears the streams' queues
        if self.before_seek is not None:
            await self._wait(self.before_seek())
        if app.consumer_generation_id != generation_id:
            log.warning("recovery_interrupted", generation=generation_id)
            return
        if sources:
            log.info(
                "offsets_restored",
                partitions=sorted(f"{tp.topic}/{tp.partition}" for tp in sources),
            )
            await self._wait(consumer.perform_seek(), timeout=self.app.conf.broker_request_timeout)
        consumer.resume_partitions(sources)
        self.completed.set()
        consumer.resume_flow()
        await app._fetcher.maybe_start()
        self.tables.on_actives_ready()
        if not app.assignor.assigned_standbys():
            self.tables.on_standbys_ready()
        app.on_rebalance_end()
        log.info("worker_started")
        if app.consumer_generation_id == generation_id:
            await self.tables.copy_others()


class TableManager(FaustTableManager):  # type: ignore[misc]
    """Faust's table manager with our recovery, and with copies of other workers' tables."""

    _recovery: Recovery | None

    def __init__(self, app: App, **kwargs: Any) -> None:
        super().__init__(app, **kwargs)
        self._copies = None if app.copied is None else TableCopies(app.copied, app.crash)

    async def copy_others(self) -> None:
        """Copy the partitions that this worker does not have."""
        if self._copies is not None:
            actives = self.app.assignor.assigned_actives()
            await self._copies.follow(others_partitions(self.values(), actives))

    async def on_rebalance(self, *args: Any, **kwargs: Any) -> None:
        """Called by Faust when the group has changed, before it opens partitions."""
        await self._stop_copies()
        await super().on_rebalance(*args, **kwargs)

    async def on_stop(self) -> None:
        """Called by Faust when the worker ends, before it closes partitions."""
        await self._stop_copies()
        await super().on_stop()

    async def _stop_copies(self) -> None:
        if self._copies is not None:
            await self._copies.stop()

    @property
    def recovery(self) -> Recovery:
        """The recovery service of this manager."""
        if self._recovery is None:
            self._recovery = Recovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery


def changelogs(app: Any) -> list[TopicSpec]:
    """The changelogs of an app's tables, with the settings with which Faust would make them."""
    topics = [table.changelog_topic for table in app.tables.values()]
    replication = app.conf.topic_replication_factor
    return [
        TopicSpec(
            topic.get_topic_name(),
            topic.partitions,
            replication,
            {"cleanup.policy": "compact", **topic.config},
        )
        for topic in topics
    ]


class Table(FaustTable):  # type: ignore[misc]
    """A table that knows which of its changelog records are still under way."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._under_way: list[Any] = []

    def _new_changelog_topic(self, **options: Any) -> Any:
        topic = super()._new_changelog_topic(**options)
        topic.config = {
            **topic.config,
            "max.message.bytes": str(MAX_RECORD_BYTES),
            "segment.bytes": str(SEGMENT_BYTES),
            "min.cleanable.dirty.ratio": "0.2",
        }
        return topic

    def send_changelog(self, *args: Any, **kwargs: Any) -> Any:
        """Called by Faust for every put and delete."""
        future = super().send_changelog(*args, **kwargs)
        self._under_way.append(future)
        return future

    def _on_changelog_sent(self, fut: Any) -> None:
        if fut.result().topic_partition in self.app.assignor.assigned_actives():
            super()._on_changelog_sent(fut)

    async def settle(self) -> None:
        """Wait until every changelog record is acknowledged by the broker.

        Raises:
            Exception: Whatever made a send fail. The table is ahead of its changelog then, and
                the worker must stop before it acknowledges the record.
        """
        futures, self._under_way = self._under_way, []
        await asyncio.gather(*futures)


class App(faust.App):  # type: ignore[misc]
    """Faust's app with the mended parts.

    Args:
        new_web: Makes the web server of an app.
        copied: The broker from which other workers' tables are copied; ``None`` for no copies.
    """

    def __init__(
        self, *args: Any, new_web: Callable[[Any], Any], copied: Kafka | None = None, **kwargs: Any
    ) -> None:
        self._make_web = new_web
        self.copied = copied
        self._is_producer_started = False
        super().__init__(*args, **kwargs)

    def _new_web(self) -> Any:
        return self._make_web(self)

    async def maybe_start_producer(self) -> Any:
        """The producer, started. Called by Faust for each record that is sent."""
        if not self._is_producer_started:
            await self._start_producer()
        return self.producer

    @stampede  # type: ignore[untyped-decorator]
    async def _start_producer(self) -> None:
        await self.producer.maybe_start()
        self._is_producer_started = True

    def _new_transport(self) -> Transport:
        return Transport(self.conf.broker_consumer, self)

    def _new_producer_transport(self) -> Transport:
        return Transport(self.conf.broker_producer, self)
