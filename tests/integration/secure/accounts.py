"""The users of the secured line: what each has to show, and how a client is told to show it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from shardmerge.schemas.pipeline.kafka_client import parse_client
from shardmerge.schemas.pipeline.tls import Tls
from tests.authority import Authority, Identity

CANARY = "Canary7Password"
"""Part of every password: where it is found, a password was told."""
WRONG = f"{CANARY}-wrong"
KAFKA_USERS = ("agents", "sink", "connect", "operator")
_OTHERS = ("debezium", "target", "rest", "store", "registry")
_SERVERS = ("broker", "mysql", "worker", "registry")
_CLIENTS = ("connect", "debezium", "sink", "operator")


class Accounts:
    """Passwords and certificates, in files of a folder.

    Attributes:
        passwords: By user, and that of the stores (``store``); ``NAME.password`` has it, too.
        stranger: Another authority, which nobody trusts.
        identities: By server or user.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        names = (*KAFKA_USERS, *_OTHERS)
        self.passwords = {n: f"{CANARY}-{n}-{secrets.token_hex(6)}" for n in names}
        self.authority = Authority(folder, self.passwords["store"])
        self.stranger = Authority(folder / "stranger", self.passwords["store"], "another CA")
        for name, password in self.passwords.items():
            (folder / f"{name}.password").write_text(password)
        self.identities = {name: self.authority.issue(name) for name in (*_SERVERS, *_CLIENTS)}

    def password_file(self, user: str) -> str:
        """The user's password as the pipeline file refers to it."""
        return f"file:{self.folder}/{user}.password"

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
                "sasl.password": self.password_file(user),
                "ssl.ca.location": str(self.authority.ca),
            }
        )

    def token_client(self, url: str, user: str, secret: str = "") -> tuple[tuple[str, str], ...]:
        """``[kafka.client]`` of a user whose tokens come from an address; ``secret`` if wrong."""
        return parse_client(
            {
                "security.protocol": "sasl_ssl",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": url,
                "sasl.oauthbearer.client.id": user,
                "sasl.oauthbearer.client.secret": secret or self.password_file(user),
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

    def tls(self, user: str, mode: str = "") -> Tls:
        """A table ``tls`` with the user's certificate."""
        own = self.identities[user]
        ca, certificate, key = (str(p) for p in (self.authority.ca, own.certificate, own.key))
        return Tls(mode=mode, ca=ca, certificate=certificate, key=key)

    def java_tls(self, user: str, mode: str = "") -> Tls:
        """The same for clients in Java, too."""
        password = "env:STORE_PASSWORD"
        return replace(
            self.tls(user, mode),
            truststore=str(self.authority.truststore),
            truststore_password=password,
            keystore=str(self.identities[user].store),
            keystore_password=password,
        )
