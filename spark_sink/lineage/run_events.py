"""Reports as OpenLineage's events. Pure.

A target has a job of the type STREAMING: its run begins when a sink process first sees the target,
tells its rows from time to time, and ends with the process. A shard's columns are told once, and
again when they change (``ACCUMULATIVE``): so an event stays small, however many shards there are.
Each executed statement is a run of a job of its own, with the target's run as its parent.

Source: OpenLineage specification 2-0-2, "Run Cycle"; facets "Job Type", "Column Level Lineage".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent
from openlineage.client.event_v2 import RunState as EventType
from openlineage.client.facet_v2 import (
    DatasetFacet,
    JobFacet,
    RunFacet,
    error_message_run,
    job_type_job,
    lifecycle_state_change_dataset,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
    sql_job,
    tags_run,
)

from shardmerge.schemas.model.actions import Adoption, TableCreation
from shardmerge.schemas.model.mysql_text import column_type
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.pipeline.row_conditions import column_names
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import StatementKind

from .column_lineage import column_lineage
from .dataset_names import DatasetNames
from .reports import (
    Report,
    RunState,
    ShardFeed,
    StatementReport,
    TargetReport,
    TargetTableNow,
)

_LifecycleFacet = lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet
_Lifecycle = lifecycle_state_change_dataset.LifecycleStateChange


class RunEvents:
    """Makes the events of one pipeline.

    Args:
        pipeline: It has the names of jobs and servers.
        version: Of shardmerge.
    """

    def __init__(self, pipeline: Pipeline, version: str) -> None:
        self._pipeline, self._version = pipeline, version
        self._names = DatasetNames(pipeline)
        self._producer = f"urn:shardmerge:{version}"

    def of(self, report: Report) -> Iterator[RunEvent]:
        """The events of a report, in their order; at least one."""
        if isinstance(report, StatementReport):
            return self._statement(report)
        return self._target(report)

    # --- a target's run

    def _target(self, report: TargetReport) -> Iterator[RunEvent]:
        size = self._pipeline.lineage.max_inputs
        parts = [report.feeds[at : at + size] for at in range(0, len(report.feeds), size)] or [()]
        for number, feeds in enumerate(parts):
            # An end comes last, a start first.
            is_turn = number == (len(parts) - 1 if report.state.ends_run else 0)
            state = report.state if is_turn else RunState.RUNNING
            yield self._event(
                state,
                report.at_ms,
                Run(report.run_id, self._run_facets(report.error if is_turn else "")),
                Job(self._namespace, self._job(report.target), self._job_type("STREAMING")),
                inputs=[self._input(feed.shard, feed.columns) for feed in feeds],
                output=self._output(report, feeds),
            )

    def _output(self, report: TargetReport, feeds: Sequence[ShardFeed]) -> OutputDataset:
        facets: dict[str, DatasetFacet] = {}
        if report.table is not None:
            facets["schema"] = self._schema(report.table.columns)
        if report.table is not None and feeds:
            facets["columnLineage"] = self._lineage(report.table, feeds)
        place = self._names.of_target(report.target)
        rows = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            report.rows, producer=self._producer
        )
        return OutputDataset(
            place.namespace, place.name, facets=facets, outputFacets={"outputStatistics": rows}
        )

    def _lineage(self, table: TargetTableNow, feeds: Sequence[ShardFeed]) -> DatasetFacet:
        filters = self._filters(feeds)
        return column_lineage(table, feeds, self._names, filters, self._producer)

    def _filters(self, feeds: Sequence[ShardFeed]) -> Iterator[tuple[ShardFeed, tuple[str, ...]]]:
        for feed in feeds:
            rules = (rule for rule in self._pipeline.routes if rule.match(feed.shard) is not None)
            rule = next(rules, None)
            if rule is not None and rule.where:
                yield feed, column_names(rule.where)

    # --- a statement's run

    def _statement(self, report: StatementReport) -> Iterator[RunEvent]:
        facets = self._run_facets()
        facets["parent"] = parent_run.ParentRunFacet(
            parent_run.Run(report.parent_id),
            parent_run.Job(self._namespace, self._job(report.target)),
            producer=self._producer,
        )
        facets["tags"] = tags_run.TagsRunFacet(self._tags(report), producer=self._producer)
        run = Run(report.run_id, facets)
        job = Job(
            self._namespace,
            f"{self._job(report.target)}.ddl",
            {
                **self._job_type("BATCH"),
                "sql": sql_job.SQLJobFacet(
                    report.statement.sql, self._pipeline.target.kind, producer=self._producer
                ),
            },
        )
        feeds = [report.feed] if report.feed is not None else []
        inputs = [self._input(feed.shard, feed.columns) for feed in feeds]
        place, output = self._names.of_target(report.target), dict[str, DatasetFacet]()
        yield self._event(
            RunState.START, report.began_ms, run, job, inputs=inputs,
            output=OutputDataset(place.namespace, place.name),
        )  # fmt: skip
        if report.table.columns:
            output["schema"] = self._schema(report.table.columns)
        if feeds:
            output["columnLineage"] = self._lineage(report.table, feeds)
        if (change := _lifecycle(report)) is not None:
            output["lifecycleStateChange"] = _LifecycleFacet(change, producer=self._producer)
        yield self._event(
            RunState.COMPLETE, report.ended_ms, run, job, inputs=inputs,
            output=OutputDataset(place.namespace, place.name, facets=output),
        )  # fmt: skip

    def _tags(self, report: StatementReport) -> list[tags_run.TagsRunFacetFields]:
        told = {
            "decision": str(report.key.version),
            "statement": str(report.key.ordinal),
            "kind": report.statement.kind.value,
        }
        if report.decision is not None:
            told["change"] = str(report.decision.id)
            told["position"] = str(report.decision.position)
        return [tags_run.TagsRunFacetFields(k, v, "SHARDMERGE") for k, v in told.items()]

    # --- parts of both

    @property
    def _namespace(self) -> str:
        return self._pipeline.lineage.namespace

    def _job(self, target: TargetTable) -> str:
        return f"{self._pipeline.name}.{target}"

    def _job_type(self, processing: str) -> dict[str, JobFacet]:
        is_stream = processing == "STREAMING"
        pattern = job_type_job.EmissionPattern(
            "PERIODIC" if is_stream else "EVENT_BASED",
            "ACCUMULATIVE",
            self._pipeline.lineage.interval_s if is_stream else None,
        )
        return {
            "jobType": job_type_job.JobTypeJobFacet(
                processing, "SHARDMERGE", "JOB" if is_stream else "COMMAND", pattern,
                producer=self._producer,
            )
        }  # fmt: skip

    def _run_facets(self, error: str = "") -> dict[str, RunFacet]:
        facets: dict[str, RunFacet] = {
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
                self._version, "shardmerge", self._version, producer=self._producer
            )
        }
        if error:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
                error, "python", producer=self._producer
            )
        return facets

    def _input(self, shard: ShardId, columns: Sequence[ShardColumn]) -> InputDataset:
        place = self._names.of_shard(shard)
        own = [item.column for item in columns if not item.id.startswith("@")]
        return InputDataset(place.namespace, place.name, facets={"schema": self._schema(own)})

    def _schema(self, columns: Sequence[Column]) -> schema_dataset.SchemaDatasetFacet:
        found = [
            schema_dataset.SchemaDatasetFacetFields(
                column.name, column_type(column.type), ordinal_position=number
            )
            for number, column in enumerate(columns, 1)
        ]
        return schema_dataset.SchemaDatasetFacet(found, producer=self._producer)

    def _event(
        self,
        state: RunState,
        at_ms: int,
        run: Run,
        job: Job,
        *,
        inputs: list[InputDataset],
        output: OutputDataset,
    ) -> RunEvent:
        at = datetime.fromtimestamp(at_ms / 1000, UTC)
        return RunEvent(
            eventType=EventType(state.value),
            eventTime=at.isoformat(timespec="milliseconds"),
            run=run, job=job, inputs=inputs, outputs=[output], producer=self._producer,
        )  # fmt: skip


def _lifecycle(
    report: StatementReport,
) -> lifecycle_state_change_dataset.LifecycleStateChange | None:
    """What a statement does to the table: it makes or alters it, or only changes rows (None).

    No statement of a decision drops, empties or renames a target.
    """
    actions = report.statement.actions
    if report.statement.kind is StatementKind.ROWS or any(isinstance(a, Adoption) for a in actions):
        return None
    creates = any(isinstance(action, TableCreation) for action in actions)
    return _Lifecycle.CREATE if creates else _Lifecycle.ALTER
