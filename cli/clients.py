"""Where every command gets its clients of Kafka, Kafka Connect and MySQL servers.

One place, so that what a pipeline file says about a connection counts for all commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import AdminClient
from pymysql.cursors import Cursor

from shardmerge.connectors.access.kafka import admin_client
from shardmerge.connectors.access.mysql import connect
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.schemas.pipeline.settings import Pipeline, Source, Target

TIMEOUT_S = 10


def topic_reader(pipeline: Pipeline) -> TopicReader:
    """A reader of the pipeline's topics."""
    return TopicReader(pipeline.kafka)


def kafka_admin(pipeline: Pipeline) -> AdminClient:
    """A client that asks Kafka about groups."""
    return admin_client(pipeline.kafka)


def connect_rest(pipeline: Pipeline, patience_s: float = 5.0) -> ConnectRest:
    """A client of the pipeline's Connect cluster.

    Args:
        pipeline: The pipeline.
        patience_s: How long a worker that does not answer, or rebalances, is waited for.

    Raises:
        ConfigError: A password or a file is not where the pipeline file says.
    """
    return ConnectRest.of(pipeline.connect, patience_s=patience_s)


@contextmanager
def mysql_cursor(server: Source | Target) -> Iterator[Cursor]:
    """A cursor on a server, each statement a transaction of its own.

    Raises:
        pymysql.MySQLError: The server cannot be reached, or refuses the user.
        ConfigError: The password or a file is not where the pipeline file says.
    """
    connection = connect(
        server,
        connect_timeout=TIMEOUT_S,
        read_timeout=TIMEOUT_S,
        autocommit=True,  # no lock on a table outlives its query
    )
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()
