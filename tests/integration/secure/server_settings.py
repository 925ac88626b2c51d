"""Settings of the secured line's servers: broker, Connect's worker, MySQL, the registry's proxy."""

from __future__ import annotations

import base64
import hashlib
import secrets
import ssl
from collections.abc import Mapping
from pathlib import Path

from shardmerge.schemas.pipeline.kafka_client import java_client
from shardmerge.schemas.pipeline.secrets import PROVIDERS, for_connect
from tests.authority import Identity

from .accounts import Accounts

_ITERATIONS = 4096
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_BASIC = "org.apache.kafka.connect.rest.basic.auth.extension"
_PROTOCOLS = {
    "USERS": "SASL_SSL",
    "MUTUAL": "SSL",
    "EXPIRED": "SSL",
    "TOKENS": "SASL_SSL",
    "CONTROLLER": "SSL",
}


def broker(accounts: Accounts, ports: Mapping[str, int], keys: str) -> dict[str, str]:
    """Properties of a broker.

    Args:
        accounts: Its users.
        ports: Of each listener of ``_PROTOCOLS``.
        keys: Address of the keys with which tokens are signed.
    """
    own = accounts.identities["broker"]
    expired = accounts.authority.issue("broker", expired=True)
    plain = " ".join(f'user_{n}="{accounts.passwords[n]}"' for n in ("connect", "operator"))
    at = {name: f"{name}://127.0.0.1:{port}" for name, port in ports.items()}
    return {
        "listeners": ",".join(at.values()),
        "advertised.listeners": ",".join(at[name] for name in at if name != "CONTROLLER"),
        "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in _PROTOCOLS.items()),
        "inter.broker.listener.name": "MUTUAL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own.both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(accounts.authority.ca),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.controller.ssl.client.auth": "required",
        "listener.name.expired.ssl.keystore.type": "PEM",
        "listener.name.expired.ssl.keystore.location": str(expired.both),
        "listener.name.users.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        "listener.name.users.scram-sha-512.sasl.jaas.config": f"{_SCRAM} required;",
        "listener.name.users.plain.sasl.jaas.config": f"{_PLAIN} required {plain};",
        "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.tokens.oauthbearer.sasl.jaas.config": (
            f"{_OAUTH}.OAuthBearerLoginModule required;"
        ),
        "listener.name.tokens.oauthbearer.sasl.server.callback.handler.class": (
            f"{_OAUTH}.OAuthBearerValidatorCallbackHandler"
        ),
        "listener.name.tokens.sasl.oauthbearer.jwks.endpoint.url": keys,
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:broker",
    }


def scram(user: str, password: str) -> str:
    """A user for ``--add-scram`` without the password: command lines are readable by everyone."""
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _ITERATIONS)
    salt_text, salted_text = (base64.b64encode(value).decode() for value in (salt, salted))
    return (
        f'SCRAM-SHA-512=[name={user},iterations={_ITERATIONS},salt="{salt_text}",'
        f'saltedpassword="{salted_text}"]'
    )


def worker(accounts: Accounts, port: int, broker_port: int) -> dict[str, str]:
    """Properties of a worker that wants a certificate and a password, and has a certificate."""
    client = java_client(accounts.mutual_client(accounts.identities["connect"]))
    store = for_connect(accounts.password_file("store"))
    https = {
        "client.auth": "required",
        "keystore.type": "PKCS12",
        "keystore.location": str(accounts.identities["worker"].store),
        "keystore.password": store,
        "key.password": store,
        "truststore.type": "PKCS12",
        "truststore.location": str(accounts.authority.truststore),
        "truststore.password": store,
    }
    return {
        "bootstrap.servers": f"127.0.0.1:{broker_port}",
        "config.providers": ",".join(PROVIDERS),
        **{f"config.providers.{name}.class": kind for name, kind in PROVIDERS.items()},
        "listeners": f"https://127.0.0.1:{port}",
        "rest.advertised.listener": "https",
        **{f"listeners.https.ssl.{key}": value for key, value in https.items()},
        "rest.extension.classes": f"{_BASIC}.BasicAuthSecurityRestExtension",
        **{
            f"{prefix}{key}": value
            for prefix in ("", "producer.", "consumer.", "admin.")
            for key, value in client.items()
        },
    }


def login_file(accounts: Accounts) -> Path:
    """The file that tells a worker's Java who may use its REST interface."""
    users = accounts.folder / "rest-users.properties"
    users.write_text(f"rest={accounts.passwords['rest']}\n")
    path = accounts.folder / "jaas.conf"
    path.write_text(
        f'KafkaConnect {{ {_BASIC}.PropertyFileLoginModule required file="{users}"; }};\n'
    )
    return path


def mysql_options(accounts: Accounts, identity: Identity) -> tuple[str, ...]:
    """Options of a server that takes encrypted connections only."""
    return (
        "--require-secure-transport=ON",
        f"--ssl-ca={accounts.authority.ca}",
        f"--ssl-cert={identity.certificate}",
        f"--ssl-key={identity.key}",
    )


def registry_context(accounts: Accounts) -> ssl.SSLContext:
    """TLS of a registry that wants a certificate."""
    own = accounts.identities["registry"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)
    context.load_verify_locations(accounts.authority.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    return context
