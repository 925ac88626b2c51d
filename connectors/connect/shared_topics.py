"""Checks that a Connect cluster keeps NULL in rows of shared topics.

Debezium's transformation that moves rows to a shared topic copies each row. Up to 3.5 the copy has
a column's default where the row has NULL. Where the workers have the transformation in several
versions, in the folders of several connectors, Connect takes the newest. So a worker with
Debezium's MariaDB connector 3.5.0 is fine as long as it has the MySQL connector 3.6.1, too.

Source: Debezium 3.5.0 and 3.6.1, ``ByLogicalTableRouter`` (``Struct.get``, and
``Struct.getWithoutDefault``); Kafka Connect, ``DelegatingClassLoader``.
"""

from __future__ import annotations

from shardmerge.connectors.debezium.source_config import SHARED_TOPICS_PLUGIN
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.server_differences import version_numbers
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.topics import shared_pattern

from .connect_rest import ConnectRest

_FIRST_RIGHT = (3, 6)


def check_shared_topics(rest: ConnectRest, pipeline: Pipeline) -> None:
    """Raise ``StackError`` when the pipeline has shared topics and the workers would lose NULLs.

    A worker that does not tell the version is taken for a right one.

    Args:
        rest: The Connect cluster.
        pipeline: Whose connectors are to be made or updated.
    """
    sources = [source.name for source in pipeline.sources]
    if not any(shared_pattern(rule, name) for rule in pipeline.routes for name in sources):
        return
    versions = rest.plugin_versions(SHARED_TOPICS_PLUGIN)
    newest = max(versions, key=version_numbers, default="")
    if newest and version_numbers(newest) < _FIRST_RIGHT:
        raise StackError(
            f"Kafka Connect at {rest.url}: Debezium {newest} is too old for shared row topics: it "
            "would write a column's default where a row has NULL",
            hint="install Debezium's MySQL connector 3.6.1 on every worker, also beside the "
            "MariaDB connector: Connect takes the newest version of what both have; or leave "
            "row_topic out of the routes",
            code="SM-4314",
        )
