"""Pure: how connectors connect to their source, to Kafka and to the registry, as Debezium reads it.

Source of the keys: Debezium 3.6 "MySQL connector" (``database.ssl.*``, pass-through properties of
schema history and signals); Apicurio's and Confluent's converters, "Client configuration"; what
they do with real servers: tests/integration/secure.
"""

from __future__ import annotations

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.kafka_client import java_client
from shardmerge.schemas.pipeline.secrets import for_connect
from shardmerge.schemas.pipeline.settings import Kafka, Pipeline, Source
from shardmerge.schemas.pipeline.tls import FOR_MARIADB, Tls


def source_tls(source: Source) -> dict[str, str]:
    """How a connector's connections to its server are encrypted and checked.

    Raises:
        ConfigError: The driver of a MariaDB source has no such mode; or a certificate for the
            source's user is missing for the connector.
    """
    tls, where = source.tls, f"source {source.name}: tls"
    if not tls.mode:
        return {}
    mode = tls.mode.replace("-", "_")
    if source.flavour == "mariadb":
        if tls.mode not in FOR_MARIADB:
            raise ConfigError(
                f"{where}: MariaDB's Java driver has no mode {tls.mode!r}",
                hint=f"known: {', '.join(FOR_MARIADB)}",
                code="SM-5702",
            )
        mode = FOR_MARIADB[tls.mode]
    if tls.certificate and not tls.keystore:
        raise ConfigError(
            f"{where}: a certificate without keystore would not be shown by the connector, which "
            "reads no PEM",
            hint="openssl pkcs12 -export -in CERTIFICATE -inkey KEY -out KEYSTORE makes one",
            code="SM-5702",
        )
    return {"database.ssl.mode": mode, **_stores("database.ssl.", tls, "", "")}


def registry_tls(kafka: Kafka) -> dict[str, str]:
    """What a converter trusts and shows when it asks the registry."""
    tls = kafka.schema_registry_tls
    if kafka.avro_converter == "apicurio":
        # 2.6 translates registry.request.ssl. to rest.request.ssl., and there takes
        # the keystore's location for the truststore's: so it gets the latter names.
        # 3 calls them registry.tls.; each ignores the other's names.
        return {
            **_stores("value.converter.apicurio.rest.request.ssl.", tls, ".location", ".type"),
            **_stores("value.converter.apicurio.registry.tls.", tls, ".location", ".type"),
        }
    return _stores("value.converter.schema.registry.ssl.", tls, ".location", ".type")


def debezium_client(pipeline: Pipeline, prefix: str) -> dict[str, str]:
    """What one of Debezium's own Kafka clients is told, each key behind a prefix."""
    found = java_client(pipeline.kafka.client) | dict(pipeline.connect.client)
    return {f"{prefix}{key}": for_connect(value) for key, value in found.items()}


def _stores(prefix: str, tls: Tls, location: str, kind: str) -> dict[str, str]:
    found = {}
    for store in ("truststore", "keystore"):
        if path := getattr(tls, store):
            found[f"{prefix}{store}{location}"] = path
            password = for_connect(getattr(tls, f"{store}_password"))
            found[f"{prefix}{store}.password"] = password
            if kind:
                found[f"{prefix}{store}{kind}"] = "JKS" if path.endswith(".jks") else "PKCS12"
    return found
