"""How our clients connect to Kafka: ``[kafka.client]``, and what it means in each library.

The keys are librdkafka's. Agents use aiokafka; Connect and Debezium use Kafka's Java clients. A
property that one of them has no word for is refused when the file is read, with the reason, so that
no client connects in another way than the others.

Source: librdkafka CONFIGURATION.md; Apache Kafka documentation, "Security" and KIP-651 (PEM);
aiokafka, "API Documentation"; what they do with a real broker: tests/integration/secure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shardmerge.schemas.model.errors import ConfigError

from .connector_properties import Properties
from .secrets import file_for_connect, for_connect, reference

"""Pairs of key and value, sorted by key: hashable, and the same in every process."""
_WHERE = "[kafka.client]"
_PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_OAUTH = "OAUTHBEARER"
_MODULES = "org.apache.kafka.common.security"
_OAUTH_OPTIONS = {"client.id": "clientId", "client.secret": "clientSecret", "scope": "scope"}
"""librdkafka's key behind ``sasl.oauthbearer.`` → the option of Java's login module."""
_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
_TIMES = {
    "connections.max.idle.ms": "connections_max_idle_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
}
"""Properties that Java's clients have under the same name → aiokafka's argument."""
KNOWN = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.username",
        "sasl.password",
        "sasl.oauthbearer.token.endpoint.url",
        *(f"sasl.oauthbearer.{name}" for name in _OAUTH_OPTIONS),
        "ssl.ca.pem",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        *_FILES,
        *_TIMES,
    }
)
_OTHER_WORDS = {"sasl.mechanisms": "sasl.mechanism"}
_OPENSSL = "its values are OpenSSL's names, and Java's clients have others"
_PKCS12 = (
    "Python's TLS, which the agents use, does not read it: give PEM files by "
    "ssl.certificate.location and ssl.key.location"
)
_KERBEROS = "Kerberos needs a ticket on each machine, which none of our clients looks after"
REFUSED: Mapping[str, str] = {
    "bootstrap.servers": "it is bootstrap_servers of [kafka]",
    "metadata.broker.list": "it is bootstrap_servers of [kafka]",
    "ssl.keystore.location": _PKCS12,
    "ssl.keystore.password": _PKCS12,
    "ssl.certificate.pem": _PKCS12,
    "ssl.key.pem": _PKCS12,
    "ssl.cipher.suites": _OPENSSL,
    "ssl.curves.list": _OPENSSL,
    "ssl.sigalgs.list": _OPENSSL,
    "ssl.crl.location": "Java's clients have no file of revoked certificates",
    "enable.ssl.certificate.verification": "Java's clients always verify: give ssl.ca.location",
    "sasl.oauthbearer.method": "a token always comes from sasl.oauthbearer.token.endpoint.url",
    "sasl.kerberos.service.name": _KERBEROS,
    "sasl.kerberos.principal": _KERBEROS,
    "sasl.kerberos.keytab": _KERBEROS,
}
"""librdkafka's properties that are not taken → why."""


@dataclass(frozen=True, slots=True)
class AiokafkaClient:
    """What aiokafka is told. Values may be references (``secrets``), files are read by the caller.

    Attributes:
        protocol: ``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``.
        mechanism: Of SASL; "" is none.
        oauth: Keys behind ``sasl.oauthbearer.`` → values.
        checks_names: Whether a broker's certificate must name its host.
        times: Further arguments, in milliseconds.
    """

    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    username: str = ""
    password: str = ""
    oauth: Properties = ()
    ca: str = ""
    ca_text: str = ""
    certificate: str = ""
    key: str = ""
    key_password: str = ""
    checks_names: bool = True
    times: tuple[tuple[str, int], ...] = ()


def parse_client(entry: Any) -> Properties:
    """Read ``[kafka.client]``.

    Raises:
        ConfigError: A property is unknown, refused (with the reason), or does not fit the others.
    """
    found = {_OTHER_WORDS.get(k, k): v for k, v in texts(entry, _WHERE).items()}
    for key, value in found.items():
        _check(key, value)
    if "sasl.mechanism" in found:
        found["sasl.mechanism"] = found["sasl.mechanism"].upper()
    if "security.protocol" in found:
        found["security.protocol"] = found["security.protocol"].lower()
    _check_together(found)
    return tuple(sorted(found.items()))


def texts(entry: Any, where: str) -> dict[str, str]:
    """The values of a table of client properties, as text.

    Raises:
        ConfigError: It is no table, or one of its values is no text, number or truth value.
    """
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where} must be a table, not {entry!r}", code="SM-5703")
    found = {}
    for key, value in entry.items():
        if isinstance(value, dict):
            raise ConfigError(
                f"{where}: {key} must be a text",
                hint=f'write the whole key in quotes: "{key}.…"',
                code="SM-5703",
            )
        if not isinstance(value, (str, int)):
            raise ConfigError(f"{where}: {key} must be a text, not {value!r}", code="SM-5703")
        found[key] = str(value).lower() if isinstance(value, bool) else str(value)
        reference(found[key])
    return found


def _check(key: str, value: str) -> None:
    if key in REFUSED:
        raise ConfigError(f"{_WHERE}: {key!r} is not taken: {REFUSED[key]}", code="SM-5703")
    if key not in KNOWN:
        raise ConfigError(
            f"{_WHERE}: {key!r} is no property of connections that all of our clients have",
            hint=f"known: {', '.join(sorted(KNOWN))}",
            code="SM-5703",
        )
    if key in _FILES and not value.startswith("/"):
        raise ConfigError(
            f"{_WHERE}: {key} must be an absolute path, not {value!r}", code="SM-5703"
        )
    if key in _TIMES and not value.isdecimal():
        raise ConfigError(
            f"{_WHERE}: {key} must be a number of milliseconds, not {value!r}", code="SM-5703"
        )
    if key == "security.protocol" and value.lower() not in _PROTOCOLS:
        raise ConfigError(
            f"{_WHERE}: {key} must be {', '.join(_PROTOCOLS)}, not {value!r}", code="SM-5703"
        )
    if key == "ssl.endpoint.identification.algorithm" and value not in ("https", "none"):
        raise ConfigError(f"{_WHERE}: {key} must be https or none, not {value!r}", code="SM-5703")
    if key == "sasl.mechanism" and value.upper() not in (*_WITH_PASSWORD, _OAUTH):
        reason = f": {_KERBEROS}" if value.upper() == "GSSAPI" else ""
        raise ConfigError(
            f"{_WHERE}: {key} {value!r} is not taken{reason}",
            hint=f"known: {', '.join((*_WITH_PASSWORD, _OAUTH))}",
            code="SM-5703",
        )


def _check_together(found: Mapping[str, str]) -> None:
    protocol = found.get("security.protocol", "plaintext")
    for part, word in (("ssl", "TLS"), ("sasl", "SASL")):
        given = sorted(key for key in found if key.startswith(f"{part}."))
        if given and part not in protocol.split("_"):
            raise ConfigError(
                f"{_WHERE}: {given[0]} has no effect, since security.protocol {protocol!r} is "
                f"without {word}",
                hint='"ssl" is TLS, "sasl_ssl" is SASL over TLS',
                code="SM-5703",
            )
    if ("ssl.certificate.location" in found) != ("ssl.key.location" in found):
        raise ConfigError(
            f"{_WHERE}: ssl.certificate.location and ssl.key.location go together", code="SM-5703"
        )
    if "ssl.ca.location" in found and "ssl.ca.pem" in found:
        raise ConfigError(
            f"{_WHERE}: ssl.ca.location and ssl.ca.pem exclude each other", code="SM-5703"
        )
    if "sasl" in protocol.split("_"):
        _check_sasl(found)


def _check_sasl(found: Mapping[str, str]) -> None:
    mechanism = found.get("sasl.mechanism", "")
    oauth = sorted(key for key in found if key.startswith("sasl.oauthbearer."))
    with_password = [key for key in ("sasl.username", "sasl.password") if key in found]
    needed = ["sasl.username", "sasl.password"]
    if mechanism == _OAUTH:
        needed = [
            f"sasl.oauthbearer.{name}"
            for name in ("token.endpoint.url", "client.id", "client.secret")
        ]
    if missing := [key for key in ("sasl.mechanism", *needed) if not found.get(key)]:
        raise ConfigError(f"{_WHERE}: {missing[0]} is missing", code="SM-5703")
    if unused := with_password if mechanism == _OAUTH else oauth:
        raise ConfigError(
            f"{_WHERE}: {unused[0]} has no effect with sasl.mechanism {mechanism}", code="SM-5703"
        )


def librdkafka_client(client: Properties, resolved: Callable[[str], str]) -> dict[str, str]:
    """What confluent-kafka is told; ``resolved`` looks up references."""
    found = {key: resolved(value) for key, value in client}
    if found.get("sasl.mechanism") == _OAUTH:
        found["sasl.oauthbearer.method"] = "oidc"
    return found


def aiokafka_client(client: Properties) -> AiokafkaClient:
    """What aiokafka is told."""
    found = dict(client)
    prefix = "sasl.oauthbearer."
    return AiokafkaClient(
        protocol=found.get("security.protocol", "plaintext").upper(),
        mechanism=found.get("sasl.mechanism", ""),
        username=found.get("sasl.username", ""),
        password=found.get("sasl.password", ""),
        oauth=tuple((k.removeprefix(prefix), v) for k, v in client if k.startswith(prefix)),
        ca=found.get("ssl.ca.location", ""),
        ca_text=found.get("ssl.ca.pem", ""),
        certificate=found.get("ssl.certificate.location", ""),
        key=found.get("ssl.key.location", ""),
        key_password=found.get("ssl.key.password", ""),
        checks_names=found.get("ssl.endpoint.identification.algorithm") != "none",
        times=tuple((_TIMES[key], int(value)) for key, value in client if key in _TIMES),
    )


def java_client(client: Properties) -> dict[str, str]:
    """What Kafka's Java clients are told, with Connect's references for ours.

    A certificate and a key in two files become references to the files' contents: Java reads both
    from one file only.
    """
    found = {key: for_connect(value) for key, value in client}
    java = {key: found[key] for key in _TIMES if key in found}
    if "security.protocol" in found:
        java["security.protocol"] = found["security.protocol"].upper()
    if "ssl.ca.location" in found:
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": found["ssl.ca.location"]}
    if "ssl.ca.pem" in found:
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": found["ssl.ca.pem"]}
    if certificate := found.get("ssl.certificate.location"):
        key = found["ssl.key.location"]
        java["ssl.keystore.type"] = "PEM"
        if key == certificate:
            java["ssl.keystore.location"] = certificate
        else:
            java["ssl.keystore.certificate.chain"] = file_for_connect(certificate)
            java["ssl.keystore.key"] = file_for_connect(key)
    if "ssl.key.password" in found:
        java["ssl.key.password"] = found["ssl.key.password"]
    if "ssl.endpoint.identification.algorithm" in found:
        named = found["ssl.endpoint.identification.algorithm"]
        java["ssl.endpoint.identification.algorithm"] = "" if named == "none" else named
    return java | _java_sasl(found)


def _java_sasl(found: Mapping[str, str]) -> dict[str, str]:
    mechanism = found.get("sasl.mechanism")
    if mechanism is None:
        return {}
    if mechanism == _OAUTH:
        options = {
            java: found[f"sasl.oauthbearer.{name}"]
            for name, java in _OAUTH_OPTIONS.items()
            if f"sasl.oauthbearer.{name}" in found
        }
        url = "sasl.oauthbearer.token.endpoint.url"
        return {
            "sasl.mechanism": mechanism,
            url: found[url],
            "sasl.login.callback.handler.class": (
                f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
            ),
            "sasl.jaas.config": _jaas(f"{_MODULES}.oauthbearer.OAuthBearerLoginModule", options),
        }
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    options = {"username": found["sasl.username"], "password": found["sasl.password"]}
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": _jaas(f"{_MODULES}.{module}", options)}


def _jaas(module: str, options: Mapping[str, str]) -> str:
    quoted = (
        f'{name}="{value}"' if value.startswith("${") else f'{name}="{_escaped(value)}"'
        for name, value in options.items()
    )
    return f"{module} required {' '.join(quoted)};"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
