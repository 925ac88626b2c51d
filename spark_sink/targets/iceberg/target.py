"""Iceberg tables as a target: one Spark session, one catalog, all state in the tables."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyspark

from shardmerge.connectors.access.secrets import resolved
from shardmerge.connectors.kafka.lease_group import lease_group
from shardmerge.connectors.kafka.registry import RegistryAddress
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.process.spark_session import JAVA_OPTIONS, SparkStart, start_spark
from shardmerge.spark_sink.targets.iceberg.texts.stored_rebuilds import control_of_shadow

from .batches import IcebergBatches
from .ddl.drift_store import IcebergDriftStore
from .ddl.journal import IcebergJournal
from .ddl.table_looks import IcebergLooks, LayoutComparer
from .fold import FoldConfig
from .lease import GroupLease
from .loads import IcebergLoads
from .store import IcebergStore
from .tables import IcebergCatalog
from .turns import TableTurns

_DRIVER_MEMORY = "1g"
_SECRET = re.compile("secret|password|token|credential|access-key", re.IGNORECASE)
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


class IcebergTarget:
    """See ``interface.Target``.

    Args:
        settings: Of Spark.
        pipeline: Its target's kind is ``iceberg``.
        spark: A Spark that others use too, and that ``close`` leaves running; None to start one.
        state_name: Stands for the pipeline in the stored state (``Merge``); "" for its own name.
        shadow: The only table of a sink that fills a shadow; None for every other one.
    """

    def __init__(
        self,
        settings: SinkSettings,
        pipeline: Pipeline,
        spark: SparkStart | None = None,
        *,
        state_name: str = "",
        shadow: TargetTable | None = None,
    ) -> None:
        target = pipeline.target
        catalog = target.catalog
        assert catalog is not None
        conf = spark_conf(catalog, settings, target.version)
        self.spark = spark or SparkStart(
            lambda: start_spark(settings, conf, hidden_conf(catalog)),
            "Java 17 and Iceberg's Spark runtime",
        )
        self._catalog = catalog.name
        self._name = state_name or pipeline.name
        self._control = TargetTable(target.control_database, pipeline.name)
        if shadow is not None:
            self._control = control_of_shadow(shadow)
        self.state = self._new_store()
        self.lease = GroupLease(
            pipeline.kafka,
            lease_group(self._name),
            topics.ddl(pipeline).name,
            self._new_store().epoch,
        )
        self.drift = IcebergDriftStore(self.state)
        self._drift_ignore = pipeline.sink.drift_ignore
        turns = TableTurns()
        self.loads = IcebergLoads(self.spark, self.state, self._new_store, turns)
        self.batches = IcebergBatches(
            self.spark,
            self.state,
            FoldConfig(pipeline.kafka, RegistryAddress.of(pipeline.kafka)),
            pipeline.sink.spark_min_records,
            turns,
            stops_spark=spark is None,
        )

    def check_server(self) -> None:
        """See ``interface.Target``: a catalog is no server, its version is that of the library."""

    def journal(self, epoch: int) -> IcebergJournal:
        """On the store of ``state``."""
        return IcebergJournal(self.state, epoch)

    def journal_of_thread(self, epoch: int) -> IcebergJournal:
        """On a store of its own; all threads share Spark's JVM."""
        return IcebergJournal(self._new_store(), epoch)

    def looks_of_thread(self) -> IcebergLooks:
        """On a store of its own; all threads share Spark's JVM."""
        return IcebergLooks(self.comparer())

    def comparer(self) -> LayoutComparer:
        """Compares tables with their decisions, for the thread that calls this."""
        return LayoutComparer(self._new_store(), self._drift_ignore)

    def close(self) -> None:
        """Close connections, and stop Spark if this target has started it."""
        self.lease.close()
        self.loads.close()
        self.batches.stop()

    def _new_store(self) -> IcebergStore:
        return IcebergStore(
            lambda: IcebergCatalog(self.spark.session(), self._catalog),
            self._control,
            self._name,
        )


def runtime_of(spark: str, version: str) -> str:
    """Maven coordinates of Iceberg's runtime for a version of pyspark."""
    major, minor = spark.split(".")[:2]
    scala = "2.12" if int(major) < 4 else "2.13"  # what pyspark's own jars are built for
    return f"org.apache.iceberg:iceberg-spark-runtime-{major}.{minor}_{scala}:{version}"


def spark_conf(catalog: SparkCatalog, settings: SinkSettings, version: str) -> Mapping[str, str]:
    """Spark's configuration for a catalog.

    Args:
        catalog: Of the pipeline file.
        settings: If they name no jars, Spark fetches Iceberg's runtime.
        version: The version of Iceberg that Spark fetches.
    """
    prefix = f"spark.sql.catalog.{catalog.name}"
    runtime = {"spark.jars.packages": runtime_of(pyspark.__version__, version)}
    if settings.ivy:
        runtime["spark.jars.ivy"] = settings.ivy
    if settings.jars:
        runtime = {"spark.jars": settings.jars}
    return {
        **runtime,
        # MERGE runs in the driver's JVM, when Spark is local.
        "spark.driver.memory": settings.driver_memory or _DRIVER_MEMORY,
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.sql.extensions": _EXTENSIONS,
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{prefix}.{k}": v for k, v in catalog.properties if not _is_secret(k)},
        # With the cache, MERGE would use a table's metadata from some moments ago.
        f"{prefix}.cache-enabled": "false",
        # The times in lines are UTC, see ``lines``.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        # Texts of shards come into SQL literals: ${…} in them is no variable, a backslash escapes.
        "spark.sql.variable.substitute": "false",
        "spark.sql.parser.escapedStringLiterals": "false",
        # Batches are much smaller than what the default of 200 partitions is made for (measured
        # with the default: 3.3 s a batch).
        "spark.sql.shuffle.partitions": "4",
    }


def hidden_conf(catalog: SparkCatalog) -> Mapping[str, str]:
    """The part of Spark's configuration for a catalog that nobody else may read.

    Raises:
        ConfigError: A password is not where the pipeline file says.
    """
    prefix = f"spark.sql.catalog.{catalog.name}"
    return {f"{prefix}.{k}": resolved(v) for k, v in catalog.properties if _is_secret(k)}


def _is_secret(key: str) -> bool:
    return _SECRET.search(key) is not None
