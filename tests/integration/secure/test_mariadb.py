"""MariaDB over TLS, as a source and as a target, with users who must show a certificate."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from shardmerge.connectors.access.kafka import consumer
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.local.install.artifacts import DEFAULT_CACHE
from shardmerge.local.line_servers import connected
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.source_servers import source_spec
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.model.errors import StackError, TargetLost
from shardmerge.schemas.pipeline.settings import Pipeline, Source, Target
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.breadth import further

from .accounts import CANARY
from .conftest import Played
from .server_settings import mysql_options

pytestmark = further
NAME = "m1"


@pytest.fixture(scope="module")
def source(played: Played) -> Iterator[Source]:
    """A MariaDB server that takes encrypted connections only, with its user as a source."""
    secured = played.secured
    port = Ports.free().source1
    folder = secured.line.directory / "mariadb"
    spec = source_spec("mariadb1011", "mariadb", folder, port, 998, cache=DEFAULT_CACHE)
    options = mysql_options(secured, secured.identities["mysql"])
    stack = LocalStack(secured.line.directory)
    stack.add(replace(spec, argv=(*spec.argv, *options)))
    owner = Target("127.0.0.1", port, USER, PASSWORD)
    with connected(owner) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        version = str(cursor.fetchall()[0][0]).partition("-")[0]
        cursor.execute("CREATE DATABASE app")
        cursor.execute("CREATE TABLE app.tbl90 (id INT PRIMARY KEY)")
        cursor.execute("INSERT INTO app.tbl90 VALUES (1)")
        secured.make_user(cursor, "debezium", "debezium")
        secured.make_user(cursor, "sink", "target")
    secured.make_acls(NAME)
    first = secured.line.pipeline.sources[0]
    try:
        yield replace(
            first,
            name=NAME,
            port=port,
            server_id=54199,
            flavour="mariadb",
            version=version,
            snapshot="debezium",  # no sink runs for it
        )
    finally:
        stack.stop("mariadb")


def of_source(played: Played, source: Source) -> Pipeline:
    """The line's pipeline with this source alone."""
    return replace(played.secured.line.pipeline, sources=(source,))


def test_mariadb_is_read_over_an_encrypted_connection(played: Played, source: Source) -> None:
    pipeline = of_source(played, source)
    with closing(ConnectRest.of(pipeline.connect)) as rest:
        (name,) = deploy_connectors(pipeline, rest)
        client = consumer(
            played.secured.owner(), {"group.id": "maria", "auto.offset.reset": "earliest"}
        )
        try:
            client.subscribe([f"{NAME}.app.tbl90"])
            deadline, record = time.monotonic() + 60, None
            while record is None:
                assert time.monotonic() < deadline, rest.status(name)
                message = client.poll(1)
                record = None if message is None or message.error() else message.value()
        finally:
            client.close()
            rest.delete(name)


def test_a_connector_for_mariadb_with_a_wrong_ca_is_refused(played: Played, source: Source) -> None:
    stranger = played.secured.stranger
    wrong = replace(source, tls=replace(source.tls, truststore=str(stranger.truststore)))
    config = connector_config(of_source(played, source), replace(wrong, name="other"))
    with (
        closing(ConnectRest.of(played.secured.line.pipeline.connect)) as rest,
        pytest.raises(StackError, match="connector other is refused") as refused,
    ):
        rest.create_or_update("other", config)
    assert CANARY not in str(refused.value)


def test_mariadb_takes_rows_over_an_encrypted_connection(played: Played, source: Source) -> None:
    target = replace(played.secured.line.pipeline.target, port=source.port)
    address = MySqlAddress.of(target)
    session = MySqlSession(address)
    try:
        session.execute("CREATE DATABASE merged")
        session.execute("CREATE TABLE merged.loaded (a INT PRIMARY KEY)")
        load = "LOAD DATA LOCAL INFILE '{path}' INTO TABLE merged.loaded (a)"
        assert (
            session.load(load, b"".join(b"%d\n" % number for number in range(100_000))) == 100_000
        )
        [(_, cipher)] = session.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
    finally:
        session.close()
    assert cipher
    stranger = replace(target.tls, ca=str(played.secured.stranger.ca))
    with pytest.raises(TargetLost, match="certificate is not accepted") as refused:
        MySqlSession(replace(address, tls=stranger)).query("SELECT 1")
    assert not refused.value.retryable
