"""The agents of a worker: which fold reads which topics into which table."""

from __future__ import annotations

from typing import Any

from shardmerge.agents.handling.handlers import CoordinatorHandler, TrackerHandler
from shardmerge.agents.handling.stored_table import COORDINATOR_TABLE, TRACKER_TABLE
from shardmerge.connectors.failpoints import Passed, nowhere
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.record_format import RecordFormat

from .delivery import Carrier, GapCheck, bytes_table, bytes_topic, carry
from .failpoints import agent_failpoint
from .wire_formats import canonical, translation, wire


def add_tracker(
    app: Any,
    pipeline: Pipeline,
    gaps: GapCheck,
    format_: RecordFormat,
    *,
    failing: str = "",
    check: Passed = nowhere,
) -> Carrier:
    """Add the tracker: schema changes and commands → schema-log; ignored statements → ddl.

    These topics have one partition each, and so has the table: they share one worker.

    Args:
        app: Faust's.
        pipeline: What is coordinated.
        gaps: Reads again where offsets are missing.
        format_: Of our own records.
        failing: See ``failpoints``.
        check: See ``Carrier``.

    Returns:
        What carries its records.
    """
    outputs = _outputs(app, topics.schema_log(pipeline).name, topics.ddl(pipeline).name)
    table = bytes_table(app, TRACKER_TABLE, partitions=1)
    carrier = Carrier(
        table,
        TrackerHandler(pipeline),
        gaps,
        outputs,
        agent_failpoint(failing, "tracker"),
        translate=translation(pipeline, format_),
        wire=wire(pipeline, format_),
        check=check,
    )
    source = bytes_topic(
        app,
        *(topics.schema_changes(pipeline, s.name).name for s in pipeline.sources),
        topics.commands(pipeline).name,
    )
    carry(app, "tracker", source, carrier)
    return carrier


def add_coordinator(
    app: Any,
    pipeline: Pipeline,
    gaps: GapCheck,
    format_: RecordFormat,
    *,
    failing: str = "",
    check: Passed = nowhere,
) -> Carrier:
    """Add the coordinator: schema-log → ddl, joined-schemas, signals. A partition has one worker.

    Args:
        app: Faust's.
        pipeline: What is coordinated.
        gaps: Reads again where offsets are missing.
        format_: Of our own records.
        failing: See ``failpoints``.
        check: See ``Carrier``.

    Returns:
        What carries its records.
    """
    signals = topics.signals(pipeline).name
    outputs = _outputs(
        app,
        topics.ddl(pipeline).name,
        topics.joined_schemas(pipeline).name,
        signals,
    )
    log = topics.schema_log(pipeline)
    table = bytes_table(app, COORDINATOR_TABLE, partitions=log.partitions)
    carrier = Carrier(
        table,
        CoordinatorHandler(pipeline),
        gaps,
        outputs,
        agent_failpoint(failing, "coordinator"),
        translate=canonical(format_),
        wire=wire(pipeline, format_),
        check=check,
        # The sink must know of a decision before rows come that are read again for it.
        later=[signals],
    )
    carry(app, "coordinator", bytes_topic(app, log.name), carrier)
    return carrier


def _outputs(app: Any, *names: str) -> dict[str, Any]:
    return {name: bytes_topic(app, name) for name in names}
