"""The agents' worker: ``python -m shardmerge.agents.app --pipeline FILE``.

The worker runs until SIGTERM or until something breaks. When something breaks it ends with a
non-zero exit code and should be started again: state and offsets are in Kafka, so a restart
continues where it stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import faust

from shardmerge.agents.handling.record_group import MAX_BYTES
from shardmerge.agents.runtime.compression import compress_lightly
from shardmerge.agents.runtime.credentials import faust_settings
from shardmerge.agents.runtime.delivery import Carrier, GapCheck
from shardmerge.agents.runtime.fetched_records import tell_empty_offsets
from shardmerge.agents.runtime.lags import AgentLags
from shardmerge.agents.runtime.membership import (
    Membership,
    guard_group,
    heartbeat_s,
    in_flight_s,
    sure_s,
)
from shardmerge.agents.runtime.overdue_end import end_in_time
from shardmerge.agents.runtime.recovery import App, Table, TableManager, changelogs
from shardmerge.agents.runtime.settings import AgentSettings, from_env
from shardmerge.agents.runtime.standstill import Standstill, guard_requests, limit
from shardmerge.agents.runtime.workers import add_coordinator, add_tracker
from shardmerge.agents.status.connector_log import ConnectorLog
from shardmerge.agents.status.view import StatusView
from shardmerge.agents.web.connector_watch import ConnectorWatch, connect_of
from shardmerge.agents.web.consumer import ViewReader
from shardmerge.agents.web.ended_reader import EndedReader, tell_all
from shardmerge.agents.web.present import KafkaPresent
from shardmerge.agents.web.server import StatusWeb
from shardmerge.agents.web.tokens import check_web
from shardmerge.connectors.access.kafka import check_admitted
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.failpoints import Passed, nowhere
from shardmerge.connectors.kafka.command_topic import send_command
from shardmerge.connectors.kafka.record_formats import awaited_record_format
from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.connectors.log_lines import add_log_option, form_of, set_up
from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.family import Sample
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.topics import TopicSpec
from shardmerge.schemas.pipeline.web import TOKEN
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.record_format import AVRO, RecordFormat
from shardmerge.schemas.records.schema_changes import ChangeId

log = logger(__name__)


def build_app(
    pipeline: Pipeline,
    settings: AgentSettings,
    format_: RecordFormat = AVRO,
    check: Passed = nowhere,
    path: Path = Path("FILE"),
) -> Any:
    """The Faust app with both agents; its topics must exist before it starts.

    Args:
        pipeline: What is coordinated.
        settings: How the worker runs.
        format_: Format of our own records.
        check: Called before each write of the agents.
        path: Of the pipeline file, for the commands that pages show.
    """
    view = StatusView()
    viewed = [spec.name for spec in viewed_topics(pipeline)]
    reader = ViewReader(
        pipeline.kafka,
        viewed,
        view,
        format_,
        commands=topics.commands(pipeline).name,
        validations=topics.validations(pipeline).name,
    )

    connectors = ConnectorLog()

    carriers: dict[str, Carrier] = {}

    async def measured(ready: bool) -> list[Sample]:
        counts = ((name, carrier.completed) for name, carrier in carriers.items())
        records = [Sample(catalog.AGENTS_RECORDS, (name,), count) for name, count in counts]
        return [*records, *(await lags.samples() if ready else ())]

    def send(said: OperatorCommand) -> ChangeId:
        check_admitted(pipeline.kafka)
        return send_command(pipeline, format_, said)

    ended = EndedReader(pipeline.kafka, topics.ended_sessions(pipeline).name, tell_all(pipeline))

    def new_web(app: Any) -> StatusWeb:
        present = KafkaPresent(pipeline)
        return StatusWeb(
            app,
            pipeline=pipeline,
            path=path,
            view=view,
            reader=reader,
            connectors=connectors,
            present=present,
            measured=measured,
            send=send,
            ended=ended,
        )

    app = App(
        f"{pipeline.name}-agents",
        new_web=new_web,
        copied=pipeline.kafka if settings.table_copies else None,
        **faust_settings(pipeline.kafka),
        store="rocksdb://",
        datadir=str(settings.data_directory),
        Table=Table,
        TableManager=TableManager,
        autodiscover=False,
        processing_guarantee="at_least_once",
        stream_wait_empty=True,
        stream_recovery_delay=0.0,
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=8 * 1024 * 1024,
        broker_session_timeout=float(settings.session_timeout_s),
        broker_heartbeat_interval=heartbeat_s(settings.session_timeout_s),
        broker_commit_interval=float(settings.commit_interval_s),
        producer_acks=-1,
        producer_compression_type="gzip",
        # What records that come together send goes out in one request.
        producer_max_batch_size=MAX_BYTES,
        producer_max_request_size=topics.MAX_RECORD_BYTES,
        topic_disable_leader=True,
        topic_allow_declare=True,
        topic_partitions=1,
        topic_replication_factor=pipeline.kafka.replication,
        # Faust's standby tables lose records; see runtime.table_copies, which takes their place.
        table_standby_replicas=0,
        web_bind=settings.web_host,
        web_host=settings.web_host,
        web_port=settings.web_port,
        worker_redirect_stdouts=False,
    )
    app.service(reader)
    app.service(ConnectorWatch(connect_of(pipeline), connectors))
    if pipeline.web.commands == TOKEN:
        app.service(ended)
    gaps = GapCheck(pipeline.kafka)
    for name, add in (("tracker", add_tracker), ("coordinator", add_coordinator)):
        failing = settings.failpoint
        carriers[name] = add(app, pipeline, gaps, format_, failing=failing, check=check)
    lags = AgentLags(app, carriers, read_topics(pipeline).get)
    _log_assignment(app)
    _close_with(app, gaps)
    return app


def read_topics(pipeline: Pipeline) -> dict[str, str]:
    """Topic → the agent that reads it."""
    changes = (topics.schema_changes(pipeline, source.name) for source in pipeline.sources)
    tracked = (spec.name for spec in (*changes, topics.commands(pipeline)))
    return dict.fromkeys(tracked, "tracker") | {topics.schema_log(pipeline).name: "coordinator"}


def viewed_topics(pipeline: Pipeline) -> tuple[TopicSpec, ...]:
    """The topics from which the status pages are made."""
    return (
        topics.joined_schemas(pipeline),
        topics.ddl(pipeline),
        topics.sink_progress(pipeline),
        topics.validations(pipeline),
        topics.commands(pipeline),
    )


def _log_assignment(app: Any) -> None:
    @app.on_partitions_assigned.connect(weak=False)  # type: ignore[untyped-decorator]
    async def on_assigned(app: Any, assigned: Any, **_: Any) -> None:
        changelogs = app.tables.changelog_topics
        sources = sorted(
            f"{tp.topic}/{tp.partition}" for tp in assigned if tp.topic not in changelogs
        )
        log.info("partitions_assigned", partitions=sources)


def _close_with(app: Any, gaps: GapCheck) -> None:
    @app.on_before_shutdown.connect(weak=False)  # type: ignore[untyped-decorator]
    async def on_shutdown(_: Any, **__: Any) -> None:
        await gaps.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a worker; the exit code is 0 only when it was told to stop."""
    options = _parser().parse_args(arguments)
    try:
        settings = _settings(options)
        set_up("agents", settings.log_level, form_of(options.log_format, os.environ))
        pipeline = parse_pipeline(options.pipeline.read_text(encoding="utf-8"), os.environ)
        check_web(pipeline.web, settings.web_host)
    except (ShardMergeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        # A source topic that is missing when the worker joins leaves its agent idle, silently.
        create_topics(pipeline.kafka, (*topics.own_topics(pipeline), *topics.page_topics(pipeline)))
        session_s = settings.session_timeout_s
        standstill = Standstill(limit(session_s, heartbeat_s(session_s)))
        format_ = awaited_record_format(pipeline.kafka)
        path = options.pipeline.resolve()
        app = build_app(pipeline, settings, format_, standstill.check, path)
        create_topics(pipeline.kafka, changelogs(app))
    except (ShardMergeError, OSError) as error:
        log.error("worker_failed", error=error)  # noqa: TRY400 - expected: no traceback
        return 2
    worker = faust.Worker(app, loglevel=settings.log_level, override_logging=False)
    worker.spinner = None
    standstill.watch()
    guard_requests(standstill.check)
    guard_group(Membership(sure_s(session_s)), in_flight_s(session_s), lambda: app.should_stop)
    end_in_time(lambda: worker.should_stop or app.should_stop)
    tell_empty_offsets()
    compress_lightly()
    worker.execute_from_commandline()
    return 0


def _settings(options: argparse.Namespace) -> AgentSettings:
    settings = from_env(os.environ)
    given = {
        "data_directory": options.datadir,
        "web_host": options.web_host,
        "web_port": options.web_port,
        "log_level": options.log_level,
    }
    settings = replace(settings, **{k: v for k, v in given.items() if v is not None})
    # Faust changes the working directory.
    return replace(settings, data_directory=settings.data_directory.resolve())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m shardmerge.agents.app", description="Run one agents' worker."
    )
    parser.add_argument("--pipeline", type=Path, required=True, help="the pipeline file (TOML)")
    parser.add_argument("--datadir", type=Path, help="where this worker keeps its tables")
    parser.add_argument("--web-host", help="address of the status pages (default 127.0.0.1)")
    parser.add_argument("--web-port", type=int, help="port of the status pages (default 6066)")
    parser.add_argument("--log-level", help="DEBUG, INFO (default), WARNING or ERROR")
    add_log_option(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
