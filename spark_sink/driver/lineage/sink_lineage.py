"""The lineage of one sink process, as its pipeline file asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from shardmerge.connectors.metrics.family import Sample
from shardmerge.schemas.model.errors import (
    ConfigError,
    ShardMergeError,
    StateReplaced,
    WriterReplaced,
)
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.spark_sink.lineage.reports import RunState

from .lineage_reports import LineageReports
from .outbox import EventRefused, Outbox

if TYPE_CHECKING:
    from shardmerge.spark_sink.driver.loop import Driver

_END_S = 3.0
"""Longest wait for the last events when the process ends, in seconds."""


class SinkLineage:
    """What tells a lineage server of this sink; without the table ``[lineage]`` nothing does.

    Attributes:
        reports: For the driver; None without the table.
    """

    def __init__(self, outbox: Outbox | None = None, reports: LineageReports | None = None) -> None:
        self._outbox, self.reports = outbox, reports

    @contextmanager
    def told_of(self, driver: Driver) -> Iterator[None]:
        """Send events while the driver's steps run, and tell at last how they ended."""
        if self._outbox is not None:
            self._outbox.start()
        try:
            yield
        except BaseException as error:
            driver.end_lineage(*_ending(error))
            raise
        driver.end_lineage(RunState.COMPLETE)

    def samples(self) -> list[Sample]:
        """The metrics now; any thread may ask."""
        return self._outbox.samples() if self._outbox is not None else []

    def close(self) -> None:
        """Send the last events, if the server takes them at once."""
        if self._outbox is not None:
            self._outbox.stop(_END_S)


def sink_lineage(pipeline: Pipeline) -> SinkLineage:
    """The lineage that the pipeline file asks for.

    Raises:
        ConfigError: The package that it needs is not installed.
    """
    settings = pipeline.lineage
    if settings.transport == "off":
        return SinkLineage()
    try:
        clients = import_module("shardmerge.connectors.access.lineage_client")
        events = import_module("shardmerge.spark_sink.lineage.run_events")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"[lineage] needs the package openlineage-python: {error.name} is not installed",
            hint="pip install 'shardmerge[spark,lineage]'",
            code="SM-7110",
        ) from None
    client = clients.lineage_client(settings, pipeline.kafka)

    def emit(event: Any) -> None:
        try:
            client.emit(event)
        except Exception as error:
            if reason := clients.refusal(error):
                raise EventRefused(reason) from error
            raise

    outbox = Outbox(events.RunEvents(pipeline, version("shardmerge")).of, emit)
    return SinkLineage(outbox, LineageReports(outbox, _server(pipeline), settings.interval_s))


def _server(pipeline: Pipeline) -> ServerContext:
    """The target's server; Iceberg has none, and its statements have MySQL's types."""
    dialect = dialect_of(pipeline.target.kind, pipeline.target.version)
    server = getattr(dialect, "server", None)
    return server if isinstance(server, ServerContext) else ServerContext()


def _ending(error: BaseException) -> tuple[RunState, str]:
    """How a run ends when the driver's steps end with an error."""
    if isinstance(error, StateReplaced):
        return RunState.COMPLETE, ""
    text = str(error) if isinstance(error, ShardMergeError) else f"{type(error).__name__}: {error}"
    return (RunState.ABORT if isinstance(error, WriterReplaced) else RunState.FAIL), text
