"""A source's user as a plain CREATE USER makes it: by caching_sha2_password, since MySQL 8.0.

The server keeps a hash of each password that it has seen: while it has one, clients need neither an
encrypted connection nor its public key. FLUSH PRIVILEGES, or a restart, makes it forget them.
"""

from __future__ import annotations

from dataclasses import replace

import pymysql

from shardmerge.cli.servers import server_findings
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.local.servers.mysql import PASSWORD as ADMIN
from shardmerge.local.servers.mysql import USER
from shardmerge.schemas.pipeline.tls import Tls

from .conftest import Play

PASSWORD = "a password"
RIGHTS = (
    "GRANT RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}",
    "GRANT SELECT ON `{database}`.* TO {user}",
    r"GRANT CREATE, SELECT, INSERT, DELETE ON `shardmerge\_%`.* TO {user}",
)
"""Those of docs/how-to/own-servers.md."""


def test_a_user_is_let_in_without_tls_also_when_the_server_has_forgotten_the_password(
    play: Play, rest: ConnectRest
) -> None:
    assert_let_in(play, rest, "disabled")


def assert_let_in(play: Play, rest: ConnectRest, mode: str) -> None:
    """Rows come, whichever of our clients and the connector's is the first to log in."""
    user = f"{play.database}@'%'"
    source = replace(
        play.pipeline.sources[0], user=play.database, password=PASSWORD, tls=Tls(mode=mode)
    )
    pipeline = replace(play.pipeline, sources=(source,))
    name = connector_name(pipeline, source)
    with play.sql() as run, play.reader(play.topic("t")) as rows:
        run(f"CREATE USER {user} IDENTIFIED WITH caching_sha2_password BY '{PASSWORD}'")
        for right in RIGHTS:
            run(right.format(user=user, database=play.database))
        run("CREATE TABLE t (id INT PRIMARY KEY)")
        run("INSERT INTO t VALUES (1)")
        run("FLUSH PRIVILEGES")
        assert not [f for f in server_findings(pipeline) if f.code == "SM-6101"]
        deploy_connectors(pipeline, rest)
        assert rows.ids(1) == [1]

        run("FLUSH PRIVILEGES")
        rest.restart(name)
        run("INSERT INTO t VALUES (2)")
        assert rows.ids(1) == [2]

        # The binlog is read by another client, which connects again by itself.
        run("FLUSH PRIVILEGES")
        end_reading_of_the_binlog(play)
        run("INSERT INTO t VALUES (3)")
        assert rows.ids(1) == [3]
        status = rest.status(name)
        assert status is not None and status.is_running


def end_reading_of_the_binlog(play: Play) -> None:
    """Kill the connection by which the user reads the binlog."""
    with (
        pymysql.connect(host="127.0.0.1", port=play.port, user=USER, password=ADMIN) as admin,
        admin.cursor() as cursor,
    ):
        cursor.execute(
            "SELECT id FROM information_schema.processlist"
            " WHERE user = %s AND command LIKE 'Binlog Dump%%'",
            (play.database,),
        )
        ((number,),) = cursor.fetchall()
        cursor.execute("KILL %s", (number,))
