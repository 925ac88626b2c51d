"""Reads an Iceberg target for its comparison, with a Spark in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import AnalysisException

from shardmerge.cli.validation.inputs.applied_offsets import Applied, Offsets
from shardmerge.cli.validation.inputs.server_rows import OtherTable
from shardmerge.schemas.model.errors import ShardMergeError, StackError
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.targets.iceberg.tables import translated
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget
from shardmerge.spark_sink.targets.interface import WriterState

_LONGEST = 500
"""Characters of a message of Spark's, which can repeat the whole query."""


class LakeServer:
    """The tables of an Iceberg target. Nothing is written.

    Each query reads the snapshot that is current when it begins.

    Args:
        target: An open target, with its Spark.
        owned: Whether ``close`` closes the target.
    """

    def __init__(self, target: IcebergTarget, *, owned: bool = True) -> None:
        self._target, self._owned = target, owned

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The answer to a query.

        Raises:
            OtherTable: A column or the table is not there.
            StackError: The catalog does not answer, or Spark refuses the query.
        """
        try:
            with translated("reading the target"):
                try:
                    return [tuple(row) for row in self._target.spark.session().sql(sql).collect()]
                except AnalysisException as error:
                    message = str(error).splitlines()[0][:_LONGEST]
                    raise OtherTable(f"target: {message}", code="SM-4412") from error
        except OtherTable:
            raise
        except ShardMergeError as error:
            raise StackError(
                f"target: {error.message}", hint=f"the query was: {sql[:300]}", code="SM-4411"
            ) from error

    def offsets(self) -> Mapping[Partition, int]:
        """Partition → the first offset that the target has not applied.

        Raises:
            StackError: The catalog does not answer.
        """
        return applied_offsets(self._target.state)()

    def close(self) -> None:
        """End this process's Spark."""
        if self._owned:
            self._target.close()


def applied_offsets(state: WriterState) -> Applied:
    """Reads the offsets of a sink whose state is in a catalog."""

    def read() -> Offsets:
        try:
            return state.offsets()
        except ShardMergeError as error:
            raise StackError(
                f"target: {error.message}", hint="check the catalog", code="SM-4411"
            ) from error

    return read


def lake_server(settings: SinkSettings, pipeline: Pipeline) -> LakeServer:
    """Begin to start Spark.

    Args:
        settings: Of Spark.
        pipeline: Its target's kind is ``iceberg``.
    """
    target = IcebergTarget(settings, pipeline)
    target.spark.begin()
    return LakeServer(target)
