"""Pipelines of one source on a local stack, and the client of their Connect worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack


@pytest.fixture
def rest(stack: LocalStack) -> Iterator[ConnectRest]:
    """Connect's client; connectors that a test leaves behind are deleted."""
    rest = ConnectRest(stack.connect_url)
    yield rest
    for name in rest.connectors():
        rest.delete(name)
    rest.close()


def pipeline_of(
    stack: LocalStack,
    name: str,
    *,
    source: str,
    port: int,
    server_id: int,
    database: str,
    target_port: int,
    flavour: str = "mysql",
    version: str = "",
    table: str = ".*",
    snapshot: str = "debezium",
) -> str:
    """The text of a pipeline file whose route takes every table of one database.

    Args:
        stack: With Kafka and Connect.
        name: Of the pipeline.
        source: Name of the source.
        port: Of the source's server on this machine.
        server_id: Of its connector.
        database: That the connector reads.
        target_port: Of the target's server on this machine.
        flavour: Of the source.
        version: Likewise; "" for the newest.
        table: Of the route, an expression.
        snapshot: Who reads the first rows. Most tests look at what the connector writes.
    """
    return f"""
        [pipeline]
        name = "{name}"
        [kafka]
        bootstrap_servers = "{stack.bootstrap_servers}"
        [connect]
        url = "{stack.connect_url}"
        [target]
        host = "127.0.0.1"
        port = {target_port}
        user = "{USER}"
        password = "{PASSWORD}"
        [[sources]]
        name = "{source}"
        host = "127.0.0.1"
        port = {port}
        user = "{USER}"
        password = "{PASSWORD}"
        server_id = {server_id}
        databases = "{database}"
        snapshot = "{snapshot}"
        flavour = "{flavour}"
        {f'version = "{version}"' if version else ""}
        [[routes]]
        database = ".*"
        table = "{table}"
        target = "merged.t"
    """
