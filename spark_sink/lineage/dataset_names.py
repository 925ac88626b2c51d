"""How OpenLineage names the tables of sources and targets. Pure.

Source: OpenLineage documentation, "Naming conventions". The client has the rules as classes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from openlineage.client.naming.dataset import (
    DatasetNaming,
    Hive,
    LocalFileSystem,
    MySQL,
)

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog


@dataclass(frozen=True, slots=True)
class DatasetName:
    """A dataset's name, and the namespace in which no other one has it."""

    namespace: str
    name: str


class DatasetNames:
    """The names of a pipeline's datasets.

    Args:
        pipeline: It has the addresses of the servers, which the names begin with.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._sources = {s.name: (s.host, str(s.port)) for s in pipeline.sources}
        self._target = pipeline.target

    def of_shard(self, shard: ShardId) -> DatasetName:
        """The shard's table on its server.

        A source that the pipeline file does not name any more has its name in place of an address.
        """
        host, port = self._sources.get(shard.source, (shard.source, "0"))
        return _named(MySQL(host, port, shard.database, shard.table))

    def of_target(self, target: TargetTable) -> DatasetName:
        """The target's table; for Iceberg by the catalog, see ``of_catalog``."""
        place = self._target
        if place.catalog is not None:
            return of_catalog(place.catalog, target)
        return _named(MySQL(place.host, str(place.port), target.database, target.table))


def of_catalog(catalog: SparkCatalog, target: TargetTable) -> DatasetName:
    """A table of an Iceberg catalog.

    A ``hadoop`` catalog names tables by their place, a ``hive`` catalog by its metastore. For any
    other kind the namespace is the address of the catalog, without users and options; without an
    address it is ``iceberg://`` and the catalog's name.
    """
    properties: Mapping[str, str] = dict(catalog.properties)
    kind, uri = properties.get("type", ""), properties.get("uri", "")
    if kind == "hadoop":
        return _at(properties["warehouse"], target)
    metastore = re.match(r"thrift://([^,:/]+):(\d+)", uri)
    if kind == "hive" and metastore:
        return _named(Hive(metastore[1], metastore[2], target.database, target.table))
    return DatasetName(_address(uri) or f"iceberg://{catalog.name}", str(target))


def _at(warehouse: str, target: TargetTable) -> DatasetName:
    parts = urlsplit(warehouse)
    path = f"{parts.path.rstrip('/')}/{target.database}/{target.table}"
    if parts.scheme in ("", "file"):
        return _named(LocalFileSystem(path))
    scheme = "s3" if parts.scheme in ("s3a", "s3n") else parts.scheme
    return DatasetName(f"{scheme}://{parts.netloc.rpartition('@')[2]}", path.strip("/"))


def _address(uri: str) -> str:
    """An address without users and options: both can have passwords."""
    prefix = "jdbc:" if uri.startswith("jdbc:") else ""
    parts = urlsplit(uri.removeprefix(prefix))
    if not parts.netloc:
        return ""
    host, path = parts.netloc.rpartition("@")[2], parts.path.partition(";")[0]
    return f"{prefix}{parts.scheme}://{host}{path.rstrip('/')}"


def _named(naming: DatasetNaming) -> DatasetName:
    return DatasetName(naming.get_namespace(), naming.get_name())
