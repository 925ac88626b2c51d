"""The whole line with everything on: TLS, users, rights, own CA, passwords outside of files."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from shardmerge.connectors.access.kafka import admin_client
from shardmerge.local.line import SOURCES, Line
from shardmerge.local.servers.secured import Secured
from shardmerge.local.servers.stack import Ports
from shardmerge.schemas.pipeline.kafka_client import java_client, parse_client
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.secrets import PROVIDERS, for_connect
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline
from shardmerge.schemas.pipeline.tls import Tls
from tests.authority import Authority, Identity

from .rights import bindings, grants

CANARY = "Canary7Password"
"""Part of every password: where it is found, a password was told."""
KAFKA_USERS = ("agents", "sink", "connect", "operator")
ROUTES = (RoutingRule(".*", "app", r"tbl\d+", "merged", "tbl"),)
_ITERATIONS = 4096
_GROUP = "shardmerge-connect"


class SecuredLine:
    """A line and what its users have.

    Attributes:
        line: The line, not started.
        folder: Certificates and passwords, each in a file.
        passwords: By user, and of the stores.
        mutual, expired: Ports of the broker's listeners with mutual TLS and an expired certificate.
    """

    def __init__(self, directory: Path) -> None:
        self.folder = directory / "secrets"
        names = (*KAFKA_USERS, "debezium", "target", "rest", "store")
        self.passwords = {n: f"{CANARY}-{n}-{secrets.token_hex(6)}" for n in names}
        self.authority = Authority(self.folder, self.passwords["store"])
        self.stranger = Authority(self.folder / "stranger", self.passwords["store"], "another CA")
        for name, password in self.passwords.items():
            (self.folder / f"{name}.password").write_text(password)
        issued = ("broker", "mysql", "worker", "connect", "debezium", "sink")
        self.identities = {name: self.authority.issue(name) for name in issued}
        self.line = Line(
            directory / "line",
            routes=ROUTES,
            secured=self._secured,
            access=self._access,
            before_connect=self._make_acls,
        )

    def start(self, prepare: Callable[[], None]) -> None:
        """Start the line; ``prepare`` makes what the sources have before."""
        self.line.directory.mkdir(parents=True)
        self._write_environments()
        os.environ.update(self.environment("operator"))

        def prepared() -> None:
            self._make_users()
            prepare()

        self.line.start(prepare=prepared)

    def environment(self, kafka_user: str) -> Mapping[str, str]:
        """The variables that a process of ours has, besides those of its system."""
        found = {"KAFKA_USER": kafka_user, "KAFKA_PASSWORD": self.passwords[kafka_user]}
        if kafka_user in ("connect", "operator"):
            found |= {
                "SOURCE_PASSWORD": self.passwords["debezium"],
                "STORE_PASSWORD": self.passwords["store"],
            }
        return found

    def client(self, user: str) -> tuple[tuple[str, str], ...]:
        """``[kafka.client]`` of a user with a password."""
        return parse_client(
            {
                "security.protocol": "sasl_ssl",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": user,
                "sasl.password": f"file:{self.folder}/{user}.password",
                "ssl.ca.location": str(self.authority.ca),
            }
        )

    def mutual_client(self, identity: Identity) -> tuple[tuple[str, str], ...]:
        """``[kafka.client]`` of a user with a certificate."""
        return parse_client(
            {
                "security.protocol": "ssl",
                "ssl.ca.location": str(self.authority.ca),
                "ssl.certificate.location": str(identity.certificate),
                "ssl.key.location": str(identity.key),
            }
        )

    def owner(self) -> Kafka:
        """Access to Kafka that may do everything: the broker's own."""
        client = self.mutual_client(self.identities["broker"])
        return Kafka(f"127.0.0.1:{self.mutual}", client=client)

    def _secured(self, ports: Ports) -> Secured:
        self.mutual, self.expired, self.expired_mysql = _further_ports(ports)
        mysql = self.identities["mysql"]
        return Secured(
            kafka=self._broker(ports),
            scram=tuple(_scram(user, self.passwords[user]) for user in KAFKA_USERS),
            kafka_client=self.client("operator"),
            mysql=self.mysql_options(mysql),
            connect=self._worker(ports),
            connect_java=(f"-Djava.security.auth.login.config={self._login_file()}",),
            connect_user="rest",
            connect_password=f"file:{self.folder}/rest.password",
            ca=str(self.authority.ca),
        )

    def mysql_options(self, identity: Identity) -> tuple[str, ...]:
        """Options of a server that takes encrypted connections only."""
        return (
            "--require-secure-transport=ON",
            f"--ssl-ca={self.authority.ca}",
            f"--ssl-cert={identity.certificate}",
            f"--ssl-key={identity.key}",
        )

    def _broker(self, ports: Ports) -> dict[str, str]:
        here = "127.0.0.1"
        own, expired = self.identities["broker"], self.authority.issue("broker", expired=True)
        listeners = {
            "USERS": ports.kafka, "MUTUAL": self.mutual, "EXPIRED": self.expired,
        }  # fmt: skip
        advertised = ",".join(f"{name}://{here}:{port}" for name, port in listeners.items())
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        return {
            "listeners": f"{advertised},CONTROLLER://{here}:{ports.controller}",
            "advertised.listeners": advertised,
            "listener.security.protocol.map": (
                "USERS:SASL_SSL,MUTUAL:SSL,EXPIRED:SSL,CONTROLLER:SSL"
            ),
            "inter.broker.listener.name": "MUTUAL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(own.both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.ca),
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.controller.ssl.client.auth": "required",
            "listener.name.expired.ssl.keystore.type": "PEM",
            "listener.name.expired.ssl.keystore.location": str(expired.both),
            "listener.name.users.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "listener.name.users.scram-sha-512.sasl.jaas.config": scram,
            "listener.name.users.plain.sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                f'user_operator="{self.passwords["operator"]}";'
            ),
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:broker",
        }

    def _worker(self, ports: Ports) -> dict[str, str]:
        client = java_client(self.mutual_client(self.identities["connect"]))
        store = for_connect(f"file:{self.folder}/store.password")
        https = {
            "keystore.type": "PKCS12",
            "keystore.location": str(self.identities["worker"].store),
            "keystore.password": store,
            "key.password": store,
            "truststore.type": "PKCS12",
            "truststore.location": str(self.authority.truststore),
            "truststore.password": store,
        }
        return {
            "bootstrap.servers": f"127.0.0.1:{self.mutual}",
            "config.providers": ",".join(PROVIDERS),
            **{f"config.providers.{name}.class": kind for name, kind in PROVIDERS.items()},
            "listeners": f"https://127.0.0.1:{ports.connect}",
            "rest.advertised.listener": "https",
            **{f"listeners.https.ssl.{key}": value for key, value in https.items()},
            "rest.extension.classes": (
                "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
            ),
            **{
                f"{prefix}{key}": value
                for prefix in ("", "producer.", "consumer.", "admin.")
                for key, value in client.items()
            },
        }

    def _login_file(self) -> Path:
        users = self.folder / "rest-users.properties"
        users.write_text(f"rest={self.passwords['rest']}\n")
        path = self.folder / "jaas.conf"
        module = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
        path.write_text(f'KafkaConnect {{ {module} required file="{users}"; }};\n')
        return path

    def _access(self, pipeline: Pipeline) -> Pipeline:
        store = "env:STORE_PASSWORD"
        of_source = self.identities["debezium"]
        source_tls = Tls(
            mode="verify-identity",
            ca=str(self.authority.ca),
            certificate=str(of_source.certificate),
            key=str(of_source.key),
            truststore=str(self.authority.truststore),
            truststore_password=store,
            keystore=str(of_source.store),
            keystore_password=store,
        )
        client = dict(self.client("operator"))
        client |= {"sasl.username": "env:KAFKA_USER", "sasl.password": "env:KAFKA_PASSWORD"}
        return replace(
            pipeline,
            kafka=replace(pipeline.kafka, client=tuple(sorted(client.items()))),
            connect=replace(
                pipeline.connect,
                user="rest",
                password=f"file:{self.folder}/rest.password",
                tls=Tls(ca=str(self.authority.ca)),
            ),
            sources=tuple(
                replace(
                    source,
                    user="debezium",
                    password="env:SOURCE_PASSWORD",
                    databases="app",
                    tls=source_tls,
                )
                for source in pipeline.sources
            ),
            target=replace(
                pipeline.target,
                user="sink",
                password=f"file:{self.folder}/target.password",
                tls=Tls(
                    mode="verify-identity",
                    ca=str(self.authority.ca),
                    certificate=str(self.identities["sink"].certificate),
                    key=str(self.identities["sink"].key),
                ),
            ),
        )

    def _write_environments(self) -> None:
        for part in ("agents", "sink", "connect"):
            lines = [f"{name}={value}" for name, value in self.environment(part).items()]
            (self.line.directory / f"{part}.env").write_text("\n".join(lines) + "\n")

    def _make_users(self) -> None:
        """The users of the servers, with the rights of the page and no others."""
        for name in (source.name for source in self.line.pipeline.sources):
            with self.line.connect(name) as connection, connection.cursor() as cursor:
                self._make_user(cursor, "debezium", "debezium")
        with self.line.connect_target() as connection, connection.cursor() as cursor:
            self._make_user(cursor, "sink", "target")

    def _make_acls(self) -> None:
        wanted = bindings("local", tuple(SOURCES), _GROUP)
        admin = admin_client(self.owner())  # kept: without it nothing would answer
        for future in admin.create_acls(wanted).values():
            future.result()

    def _make_user(self, cursor, user: str, password: str) -> None:
        cursor.execute(
            f"CREATE USER '{user}'@'%%' IDENTIFIED WITH mysql_native_password BY %s REQUIRE X509",
            (self.passwords[password],),
        )
        for statement in grants(user):
            cursor.execute(statement)


def connect_of(line: Line) -> Connect:
    """The REST interface of a line."""
    return line.pipeline.connect


def _further_ports(ports: Ports) -> tuple[int, int, int]:
    while True:
        free = Ports.free()
        found = (free.kafka, free.connect, free.target)
        if not set(found) & {getattr(ports, name) for name in ports.__dataclass_fields__}:
            return found


def _scram(user: str, password: str) -> str:
    """A user for ``--add-scram`` without the password: command lines are readable by everyone."""
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _ITERATIONS)
    salt_text, salted_text = (base64.b64encode(value).decode() for value in (salt, salted))
    return (
        f'SCRAM-SHA-512=[name={user},iterations={_ITERATIONS},salt="{salt_text}",'
        f'saltedpassword="{salted_text}"]'
    )
