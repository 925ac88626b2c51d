"""The whole line with everything on: TLS, users, rights, own CA, passwords outside of files."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pymysql.cursors import Cursor

from shardmerge.connectors.access.kafka import admin_client
from shardmerge.local.line import SOURCES, Line
from shardmerge.local.servers.registry import CCOMPAT
from shardmerge.local.servers.secured import Secured
from shardmerge.local.servers.stack import Ports
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Kafka, Pipeline
from tests.integration.registry_proxy import USER as REGISTRY_USER
from tests.integration.registry_proxy import registry_proxy

from .accounts import KAFKA_USERS, Accounts
from .rights import bindings, grants
from .server_settings import broker, login_file, mysql_options, registry_context, scram, worker
from .token_server import TokenServer, serving

ROUTES = (RoutingRule(".*", "app", r"tbl\d+", "merged", "tbl"),)
_GROUP = "shardmerge-connect"
_ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls"


class SecuredLine(Accounts):
    """A line and its users.

    Attributes:
        line: The line.
        mutual, expired, tokens: Ports of the broker's listeners with mutual TLS, an expired
            certificate, and OAuth tokens; known once started, as what follows.
        expired_mysql: A port for a further server.
        token_server: Gives the tokens.
        registry_url: Of the registry behind TLS and its user.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "secrets")
        self._beside = ExitStack()
        self.line = Line(
            directory / "line",
            routes=ROUTES,
            row_format="avro",
            secured=self._secured,
            access=self._access,
            before_connect=lambda: self.make_acls(*SOURCES),
        )

    def start(self, prepare: Callable[[], None]) -> None:
        """Start the line; ``prepare`` makes what the sources have before."""
        self.line.directory.mkdir(parents=True)
        for part in ("agents", "sink", "connect"):
            lines = [f"{name}={value}" for name, value in self.environment(part).items()]
            (self.line.directory / f"{part}.env").write_text("\n".join(lines) + "\n")
        os.environ.update(self.environment("operator"))

        def prepared() -> None:
            self._make_users()
            prepare()

        self.line.start(prepare=prepared)

    def stop(self) -> None:
        """Stop the line, and what runs beside it."""
        self.line.stop()
        self._beside.close()

    def owner(self) -> Kafka:
        """Access to Kafka that may do everything: the broker's own."""
        client = self.mutual_client(self.identities["broker"])
        return Kafka(f"127.0.0.1:{self.mutual}", client=client)

    def with_token(self, user: str, secret: str = "") -> Kafka:
        """Access to Kafka with tokens; ``secret`` instead of the right one."""
        client = self.token_client(self.token_server.url, user, secret)
        return Kafka(f"127.0.0.1:{self.tokens}", client=client)

    def _secured(self, ports: Ports) -> Secured:
        further = _further_ports(ports)
        self.mutual, self.expired, self.tokens, self.expired_mysql, of_server = further
        users = {user: self.passwords[user] for user in KAFKA_USERS}
        self.token_server = self._beside.enter_context(serving(TokenServer(of_server, users)))
        keys = self.folder / "keys.json"
        keys.write_text(self.token_server.keys())
        url = f"http://127.0.0.1:{ports.registry}{CCOMPAT}"
        proxy = registry_proxy(url, self.passwords["registry"], registry_context(self))
        self.registry_url = self._beside.enter_context(proxy).url
        listeners = {
            "USERS": ports.kafka, "MUTUAL": self.mutual, "EXPIRED": self.expired,
            "TOKENS": self.tokens, "CONTROLLER": ports.controller,
        }  # fmt: skip
        return Secured(
            kafka=broker(self, listeners, keys.as_uri()),
            kafka_java=(f"{_ALLOWED}={keys.as_uri()}",),
            scram=tuple(scram(user, password) for user, password in users.items()),
            kafka_client=self.client("operator"),
            mysql=mysql_options(self, self.identities["mysql"]),
            connect=worker(self, ports.connect, self.mutual),
            connect_java=(f"-Djava.security.auth.login.config={login_file(self)}",),
            connect_user="rest",
            connect_password=self.password_file("rest"),
            connect_tls=self.tls("operator"),
        )

    def _access(self, pipeline: Pipeline) -> Pipeline:
        client = dict(self.client("operator"))
        client |= {"sasl.username": "env:KAFKA_USER", "sasl.password": "env:KAFKA_PASSWORD"}
        source = {
            "user": "debezium",
            "password": "env:SOURCE_PASSWORD",
            "databases": "app",
            "tls": self.java_tls("debezium", "verify-identity"),
        }
        return replace(
            pipeline,
            kafka=replace(
                pipeline.kafka,
                client=tuple(sorted(client.items())),
                schema_registry=self.registry_url,
                schema_registry_user=REGISTRY_USER,
                schema_registry_password=self.password_file("registry"),
                schema_registry_tls=self.java_tls("operator"),
            ),
            connect=replace(
                pipeline.connect,
                user="rest",
                password=self.password_file("rest"),
                tls=self.tls("operator"),
            ),
            sources=tuple(
                replace(each, **source)  # type: ignore[arg-type]
                for each in pipeline.sources
            ),
            target=replace(
                pipeline.target,
                user="sink",
                password=self.password_file("target"),
                tls=self.tls("sink", "verify-identity"),
            ),
        )

    def _make_users(self) -> None:
        """The users of all servers."""
        for name in (source.name for source in self.line.pipeline.sources):
            with self.line.connect(name) as connection, connection.cursor() as cursor:
                self.make_user(cursor, "debezium", "debezium")
        with self.line.connect_target() as connection, connection.cursor() as cursor:
            self.make_user(cursor, "sink", "target")

    def make_acls(self, *sources: str) -> None:
        """Give Kafka's users the rights of the page for some sources."""
        wanted = bindings("local", sources, _GROUP)
        admin = admin_client(self.owner())  # kept: without it nothing would answer
        for future in admin.create_acls(wanted).values():
            future.result()

    def make_user(self, cursor: Cursor, user: str, password: str) -> None:
        """A user of a server, with the rights of the page and no others."""
        cursor.execute(
            f"CREATE USER '{user}'@'%%' IDENTIFIED BY %s REQUIRE X509",
            (self.passwords[password],),
        )
        for statement in grants(user):
            cursor.execute(statement)


def _further_ports(ports: Ports) -> tuple[int, int, int, int, int]:
    while True:
        free = Ports.free()
        found = (free.kafka, free.connect, free.target, free.source1, free.source2)
        if not set(found) & {getattr(ports, name) for name in ports.__dataclass_fields__}:
            return found
