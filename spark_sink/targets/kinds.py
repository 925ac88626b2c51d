"""Opens the kind of target that the pipeline file names."""

from __future__ import annotations

from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget
from shardmerge.spark_sink.targets.mysql.target import MySqlTarget

from .interface import Target


def open_target(settings: SinkSettings, pipeline: Pipeline) -> Target:
    """The pipeline's target; nothing is connected or started yet."""
    if pipeline.target.kind == "iceberg":
        return IcebergTarget(settings, pipeline)
    return MySqlTarget(settings, pipeline)
