"""From the pipeline file to its kind of target."""

from __future__ import annotations

from shardmerge.schemas.pipeline import Pipeline
from shardmerge.spark_sink.settings import SinkSettings

from .iceberg.target import IcebergTarget
from .interface import Target
from .mysql.target import MySqlTarget


def open_target(settings: SinkSettings, pipeline: Pipeline) -> Target:
    """The pipeline's target; nothing is connected or started yet."""
    if pipeline.target.kind == "iceberg":
        return IcebergTarget(settings, pipeline)
    return MySqlTarget(settings, pipeline)
