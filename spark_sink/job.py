"""The sink's process: ``python -m shardmerge.spark_sink.job --pipeline FILE``.

Reads the settings, connects, becomes the writer, then runs the driver's steps until it is told to
end. As a standby (``--standby``) it waits until no other sink has the writer's lease before it
becomes the writer. Spark runs by then on one machine, and for an Iceberg target. On a cluster its
executors would take the cores of the sink that writes.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from types import FrameType
from typing import TypeVar

from shardmerge.connectors.access.kafka import check_admitted
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.kafka.record_formats import awaited_record_format
from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.connectors.log_lines import set_up
from shardmerge.connectors.metrics.endpoint import serve
from shardmerge.schemas.model.errors import (
    ConfigError,
    ShardMergeError,
    StackError,
    StateReplaced,
    TargetError,
    WriterReplaced,
)
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.record_format import RecordFormat
from shardmerge.spark_sink.driver.drift_watch import DriftWatch
from shardmerge.spark_sink.driver.lease_keeper import LeaseKeeper, await_lease
from shardmerge.spark_sink.driver.lineage.sink_lineage import SinkLineage, sink_lineage
from shardmerge.spark_sink.driver.loop import Driver
from shardmerge.spark_sink.driver.sink_role import SinkRole
from shardmerge.spark_sink.driver.statement_runs import StatementRunner
from shardmerge.spark_sink.kafka.arrivals import Arrivals
from shardmerge.spark_sink.kafka.intake import Intake, tailed_topics
from shardmerge.spark_sink.kafka.offsets import OffsetReader
from shardmerge.spark_sink.kafka.publisher import ProgressPublisher
from shardmerge.spark_sink.kafka.retention_watch import RetentionWatch
from shardmerge.spark_sink.kafka.topic_tail import TopicTail
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.process.settings import SinkSettings, settings_from
from shardmerge.spark_sink.rebuilding.merge import Merge
from shardmerge.spark_sink.rebuilding.route_changes import routes_in_force
from shardmerge.spark_sink.targets.interface import Target
from shardmerge.spark_sink.targets.kinds import open_target
from shardmerge.spark_sink.targets.shadow_merges import OwnDecisions, shadow_merge

log = logger(__name__)
_T = TypeVar("_T")

_RETRY_S = 1.0
_CHECK_S = 10.0
"""Seconds after which a sink without work checks again that it is still the writer."""


class Stopped:
    """Set by SIGTERM and SIGINT: the process ends after the current step."""

    def __init__(self) -> None:
        self.requested = False

    def install(self) -> None:
        """Install the signal handlers; only the main thread may do so."""
        signal.signal(signal.SIGTERM, self._request)
        signal.signal(signal.SIGINT, self._request)

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True


def run(
    settings: SinkSettings, pipeline: Pipeline, stopped: Stopped, own: OwnDecisions | None = None
) -> None:
    """Run the sink until ``stopped`` is requested.

    Args:
        settings: Of the process.
        pipeline: What is applied.
        stopped: Ends it.
        own: See ``shadow_merge``; a sink that fills a shadow needs it.

    Raises:
        ShardMergeError: The sink cannot start, or must not go on.
    """
    check_admitted(pipeline.kafka)
    while not stopped.requested:
        merge = Merge(pipeline, pipeline.name)
        if settings.rebuild is not None:
            if own is None:
                raise ConfigError(
                    "--rebuild is for `shardmerge rebuild`",
                    hint="run that command: it starts this sink",
                    code="SM-6501",
                )
            merge = shadow_merge(settings, pipeline, settings.rebuild, own)
        try:
            _run_merge(settings, merge, stopped)
        except StateReplaced as error:
            log.info("state_replaced", reason=error.message)


def _run_merge(settings: SinkSettings, merge: Merge, stopped: Stopped) -> None:
    """Run the sink until ``stopped`` is requested, or its state is replaced.

    Raises:
        StateReplaced: A rebuilt table took a target's place.
        ShardMergeError: The sink cannot start, or must not go on.
    """
    # First: what is awaited below may be away for longer than a probe of the process waits.
    role = SinkRole()
    stop_metrics = _serve_metrics(settings, role)
    try:
        with suppress(_ToldToEnd):
            _write_merge(settings, merge, role, stopped)
    finally:
        stop_metrics()
    log.info("sink_ended", pipeline=merge.state_name)


def _write_merge(settings: SinkSettings, merge: Merge, role: SinkRole, stopped: Stopped) -> None:
    pipeline, kafka = merge.pipeline, merge.pipeline.kafka
    lineage = SinkLineage() if merge.shadow else sink_lineage(pipeline)
    format_ = awaited_record_format(kafka, lambda: stopped.requested)
    target = open_target(settings, merge)
    try:
        if settings.starts_spark_at_once:
            target.batches.start()
        # Also checks that the schema-change topics and the ddl topic have one partition each: with
        # more their records would have no order, and the barrier needs that order.
        create_topics(kafka, topics.own_topics(pipeline))
        _when_target_answers(target.check_server, stopped)
        if _may_write(settings, pipeline, target, role, stopped):
            keeper = LeaseKeeper(target.lease)
            with ExitStack() as ending:
                ending.callback(lineage.close)
                # After everything that writes: a standby begins when it is free.
                ending.callback(keeper.stop)
                keeper.start()
                target.batches.start()
                epoch = _when_target_answers(partial(_take_over, target), stopped)
                keeper.compare(epoch)
                log.info("sink_started", pipeline=merge.state_name, writer_epoch=epoch)
                merge = _when_target_answers(partial(_in_force, merge, target), stopped)
                reach("epoch-taken")
                driving = _Driving(settings, merge, target, format_, role, epoch, lineage)
                driving.run(keeper, stopped)
    finally:
        target.close()


def _in_force(merge: Merge, target: Target) -> Merge:
    """The merge, with what the target's tables have in place of what the file's routes say."""
    routes = routes_in_force(merge.pipeline.routes, target.state.route_changes())
    for file, here in zip(merge.pipeline.routes, routes, strict=True):
        target_table = TargetTable(here.target_database, here.target_table)
        if file.where != here.where:
            log.warning(
                "where_replaced", target=target_table, where=here.where, file_where=file.where
            )
        was, is_now = file.policies.origin, here.policies.origin
        if was != is_now:
            log.warning(
                "origin_replaced", target=target_table, origin=str(is_now), file_origin=str(was)
            )
    return replace(merge, pipeline=replace(merge.pipeline, routes=routes))


def _may_write(
    settings: SinkSettings, pipeline: Pipeline, target: Target, role: SinkRole, stopped: Stopped
) -> bool:
    """Wait as a standby, if this sink is one; False if it was told to end meanwhile."""
    if not settings.standby:
        return True
    log.info("sink_waits", pipeline=pipeline.name)
    role.waits()
    return await_lease(target.lease, lambda: stopped.requested)


@dataclass(frozen=True, slots=True)
class _Driving:
    """What a writer does, from when it has taken its epoch."""

    settings: SinkSettings
    merge: Merge
    target: Target
    format_: RecordFormat
    role: SinkRole
    epoch: int
    lineage: SinkLineage

    def run(self, keeper: LeaseKeeper, stopped: Stopped) -> None:
        """Run the driver until ``stopped`` is requested."""
        merge, target, epoch = self.merge, self.target, self.epoch
        pipeline, settings = merge.pipeline, self.settings
        kafka = pipeline.kafka
        statements = StatementRunner(
            lambda: target.journal_of_thread(epoch), pipeline.sink.statement_connections
        )
        tail = TopicTail(kafka, tailed_topics(pipeline))
        arrivals = Arrivals(kafka, frozenset(tailed_topics(pipeline)))
        topic = "" if merge.shadow else topics.sink_progress(pipeline).name
        publisher = ProgressPublisher(kafka, topic, self.format_)
        driver = Driver(
            pipeline,
            intake=Intake(
                pipeline,
                OffsetReader(kafka),
                tail,
                self.format_,
                orders_partitions=target.batches.orders_partitions,
                arrivals=arrivals,
                as_read=merge.as_read,
                read_windows=target.batches.read_windows,
            ),
            control=target.state,
            journal=target.journal(epoch),
            statements=statements,
            runner=target.batches,
            publisher=publisher,
            epoch=epoch,
            loads=target.loads,
            drift=DriftWatch(
                target.drift, target.looks_of_thread, pipeline.sink.drift_interval_s, epoch
            ),
            lineage=self.lineage.reports,
            sinks=lambda: keeper.sinks,
        )
        samples = partial(driver.metrics.samples, per_shard=settings.metrics_per_shard)
        self.role.writes(lambda: [*samples(), *self.lineage.samples()])
        watch = RetentionWatch(kafka, driver.metrics.held_rows, driver.metrics.retention_read)
        with ExitStack() as ending:
            # From the last to the first; each ends, whatever becomes of another.
            for end in (arrivals.close, tail.close, publisher.close, driver.stop, statements.stop):
                ending.callback(end)
            if settings.metrics_port:
                watch.start()
                ending.callback(watch.stop)
            ending.enter_context(self.lineage.told_of(driver))
            interval_s = pipeline.sink.poll_interval_ms / 1000
            try:
                _run_steps(driver, self._check_routes, interval_s, keeper, stopped)
            except WriterReplaced as error:
                if not self._has_swapped(driver.swaps):
                    raise
                raise StateReplaced(
                    "a rebuild has ended this sink's writer epoch",
                    hint="the sink reads its state anew",
                    code="SM-6511",
                ) from error

    def _has_swapped(self, swaps: int | None) -> bool:
        """Whether a rebuild has begun the present epoch, and no other sink.

        Args:
            swaps: The latest rebuild when the state was read; None if it was not.
        """
        state = self.target.state
        is_next = state.epoch() == self.epoch + 1
        return is_next and swaps is not None and state.marks().swaps != swaps

    def _check_routes(self) -> None:
        """Check that no rebuild has changed a route since the routes were read.

        Called when the driver knows which rebuild was the last one; it notices later ones.

        Raises:
            StateReplaced: One has.
        """
        routes = self.merge.pipeline.routes
        if routes_in_force(routes, self.target.state.route_changes()) != routes:
            raise StateReplaced(
                "a rebuild has changed a route",
                hint="the sink reads its state anew",
                code="SM-6511",
            )


def _serve_metrics(settings: SinkSettings, role: SinkRole) -> Callable[[], None]:
    """Serve the metrics if that is wanted. Returns what ends it."""
    if not settings.metrics_port:
        return lambda: None
    host, port = settings.metrics_host, settings.metrics_port
    stop = serve(role.samples, host, port, role.is_ready)
    log.info("metrics_served", address=f"{host}:{port}")
    return stop


def _run_steps(
    driver: Driver,
    check_routes: Callable[[], None],
    poll_interval_s: float,
    keeper: LeaseKeeper,
    stopped: Stopped,
) -> None:
    """Run the driver's steps until ``stopped`` is requested; try again while a server is away."""
    loaded, moved, checked_at = False, True, time.monotonic()
    while not stopped.requested:
        keeper.check()
        try:
            if not loaded:
                driver.load()
                check_routes()
                loaded = True
            wait_s = driver.gathering_s if moved else poll_interval_s
            moved = driver.step(wait_s, idle=not moved)
            if not moved and time.monotonic() - checked_at > _CHECK_S:
                driver.check_writer()
                checked_at = time.monotonic()
        except (StackError, TargetError) as error:
            if isinstance(error, TargetError) and not error.retryable:
                raise
            log.warning("step_failed", error=error)
            time.sleep(_RETRY_S)


def _take_over(target: Target) -> int:
    """Become the target's writer."""
    target.state.prepare()
    return target.state.take_epoch()


class _ToldToEnd(Exception):
    """The sink was told to end while it waited for its target."""


def _when_target_answers(ask: Callable[[], _T], stopped: Stopped) -> _T:
    """What ``ask`` returns, waiting for a target that is away.

    Raises:
        ConfigError: The target is not what the pipeline file says; nothing was changed there.
        _ToldToEnd: The sink was told to end meanwhile.
    """
    while True:
        try:
            return ask()
        except TargetError as error:
            if not error.retryable:
                raise
            if stopped.requested:
                raise _ToldToEnd from error
            log.warning("target_awaited", error=error)
            time.sleep(_RETRY_S)


def main(arguments: Sequence[str] | None = None, own: OwnDecisions | None = None) -> int:
    """Entry point. Returns the exit code.

    0: the sink was told to end; 1: it cannot go on; 2: its settings or the pipeline file are wrong.
    """
    try:
        settings = settings_from(sys.argv[1:] if arguments is None else arguments, os.environ)
        pipeline = parse_pipeline(_text(settings), os.environ)
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    set_up("sink", settings.log_level, settings.log_format)
    stopped = Stopped()
    stopped.install()
    try:
        run(settings, pipeline, stopped, own)
    except ShardMergeError as error:
        log.error("sink_failed", error=error)  # noqa: TRY400 - expected: the fields say it all
        return 1
    return 0


def _text(settings: SinkSettings) -> str:
    try:
        return settings.pipeline_file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"pipeline file {settings.pipeline_file}: {error.strerror}", code="SM-5001"
        ) from None


if __name__ == "__main__":
    sys.exit(main())
