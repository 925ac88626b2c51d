"""OpenLineage's names of tables.

Source: OpenLineage documentation, "Naming conventions".
"""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog
from shardmerge.spark_sink.lineage.dataset_names import DatasetName, DatasetNames, of_catalog
from tests.unit.spark_sink.lineage.lined import TARGET, pipeline, shard


def test_a_table_has_the_address_of_its_server() -> None:
    names = DatasetNames(pipeline())
    assert names.of_shard(shard("a")) == DatasetName("mysql://db1:3306", "app.a")
    assert names.of_target(TARGET) == DatasetName("mysql://dwh:3307", "merged.t")


def test_a_source_that_the_file_does_not_name_keeps_its_own_name() -> None:
    found = DatasetNames(pipeline()).of_shard(ShardId("gone", "app", "a"))
    assert found == DatasetName("mysql://gone:0", "app.a")


@pytest.mark.parametrize(
    ("properties", "namespace", "name"),
    [
        ({"type": "hadoop", "warehouse": "/data/lake/"}, "file", "/data/lake/merged/t"),
        ({"type": "hadoop", "warehouse": "file:///lake"}, "file", "/lake/merged/t"),
        ({"type": "hadoop", "warehouse": "s3a://b/lake"}, "s3://b", "lake/merged/t"),
        ({"type": "hadoop", "warehouse": "hdfs://nn:8020/l"}, "hdfs://nn:8020", "l/merged/t"),
        ({"type": "hive", "uri": "thrift://ms:9083"}, "hive://ms:9083", "merged.t"),
        ({"type": "rest", "uri": "https://u:secret@cat/api/"}, "https://cat/api", "merged.t"),
        (
            {"type": "jdbc", "uri": "jdbc:postgresql://pg:5432/c?password=secret"},
            "jdbc:postgresql://pg:5432/c",
            "merged.t",
        ),
        ({"type": "glue"}, "iceberg://lake", "merged.t"),
    ],
)
def test_an_iceberg_table_is_named_by_its_catalog(
    properties: dict[str, str], namespace: str, name: str
) -> None:
    catalog = SparkCatalog("lake", tuple(sorted(properties.items())))
    assert of_catalog(catalog, TARGET) == DatasetName(namespace, name)
