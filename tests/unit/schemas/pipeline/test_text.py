from __future__ import annotations

from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import (
    Keyless,
    RoutePolicies,
    RowOperation,
    RowsPolicy,
    TypePolicy,
)
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Sink, Source, Target
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog
from shardmerge.schemas.pipeline.text import pipeline_text


def test_a_written_pipeline_is_read_back_as_it_was() -> None:
    pipeline = Pipeline(
        name="p-1",
        kafka=Kafka("127.0.0.1:9092", log_partitions=2),
        connect=Connect("http://127.0.0.1:8083", row_partitions=2),
        sources=(
            Source("s1", "127.0.0.1", 3306, "root", 'pass"\\word', 1, tables=r"app\.t_\d+"),
            Source("s2", "127.0.0.1", 3307, "root", "", 2, sql_mode="ANSI_QUOTES"),
        ),
        routes=(
            RoutingRule(".*", r"(?P<case>sc\d+)_app", "t_.*", r"\g<case>_merged", "t"),
            RoutingRule(
                ".*",
                "a",
                "t",
                "merged",
                "a",
                on_truncate=RowsPolicy.KEEP,
                ignore=(RowOperation.DELETE, RowOperation.TRUNCATE),
            ),
            RoutingRule(
                ".*",
                "o",
                r"t_(?P<n>\d+)",
                "merged",
                "o",
                policies=RoutePolicies(
                    origin=Origin(
                        (
                            OriginColumn(OriginPart.SHARD, "_s"),
                            OriginColumn(OriginPart.GROUP, "_n", "n", "int unsigned"),
                        ),
                        in_keys=True,
                    ),
                    on_drop=RowsPolicy.DELETE,
                    keyless=Keyless.REFUSE,
                    types=TypePolicy.PUBLISHED,
                ),
            ),
        ),
        target=Target("127.0.0.1", 3308, "root", "x"),
        sink=Sink(max_batch_records=10),
    )
    assert parse_pipeline(pipeline_text(pipeline), {}) == pipeline


def test_a_written_iceberg_target_is_read_back_as_it_was() -> None:
    properties = (("s3.endpoint", "http://x"), ("type", "hadoop"), ("warehouse", "/w"))
    catalog = SparkCatalog("lake", properties)
    pipeline = Pipeline(
        "p",
        Kafka("127.0.0.1:9092"),
        Connect("http://127.0.0.1:8083"),
        (Source("s1", "127.0.0.1", 3306, "root", "", 1),),
        (RoutingRule(".*", "app", "t", "merged", "t"),),
        Target("", 0, "", "", "control", "iceberg", "1.12.0", catalog),
    )
    assert parse_pipeline(pipeline_text(pipeline), {}) == pipeline
