"""How connectors connect: TLS of sources, Debezium's own Kafka clients, the registry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.connectors.debezium.client_config import (
    debezium_client,
    registry_tls,
    source_tls,
)
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Kafka, Pipeline, Source
from shardmerge.schemas.pipeline.tls import Tls

STORES = Tls(
    mode="verify-identity",
    ca="/ca.pem",
    certificate="/c.pem",
    key="/c.key",
    truststore="/ca.p12",
    truststore_password="env:STORE",
    keystore="/c.jks",
    keystore_password="file:/run/store",
)
TEXT = """
[pipeline]
name = "p"
[kafka]
bootstrap_servers = "k:1"
[kafka.client]
"security.protocol" = "sasl_plaintext"
"sasl.mechanism" = "PLAIN"
"sasl.username" = "env:USER"
"sasl.password" = "env:PASSWORD"
[connect]
url = "http://c:1"
[connect.client]
"sasl.mechanism" = "SCRAM-SHA-512"
"client.rack" = "r1"
[[sources]]
name = "s1"
host = "h"
port = 1
user = "u"
password = "env:SOURCE"
server_id = 1
[[routes]]
database = "a"
table = "t"
target = "a.t"
[target]
host = "h"
port = 1
user = "u"
password = "p"
"""


def pipeline() -> Pipeline:
    return parse_pipeline(TEXT, {})


def source(tls: Tls, flavour: str = "mysql") -> Source:
    return replace(pipeline().sources[0], tls=tls, flavour=flavour)


def test_a_connector_checks_the_server_and_shows_its_certificate() -> None:
    stores = {
        "database.ssl.truststore": "/ca.p12",
        "database.ssl.truststore.password": "${env:STORE}",
        "database.ssl.keystore": "/c.jks",
        "database.ssl.keystore.password": "${directory:/run:store}",
    }
    assert source_tls(source(STORES)) == {"database.ssl.mode": "verify_identity", **stores}
    of_mariadb = source_tls(source(STORES, "mariadb"))
    assert of_mariadb == {"database.ssl.mode": "verify-full", **stores}
    assert source_tls(source(Tls())) == {}


def test_mariadbs_driver_has_no_mode_preferred() -> None:
    with pytest.raises(ConfigError, match="no mode 'preferred'"):
        source_tls(source(Tls(mode="preferred"), "mariadb"))


def test_a_certificate_in_pem_alone_would_not_be_shown() -> None:
    with pytest.raises(ConfigError, match="without keystore"):
        source_tls(source(replace(STORES, keystore="", keystore_password="")))


def test_debeziums_own_clients_log_in_with_references() -> None:
    config = connector_config(pipeline(), pipeline().sources[0])
    prefixes = (
        "schema.history.internal.producer.",
        "schema.history.internal.consumer.",
        "signal.consumer.",
    )
    for prefix in prefixes:
        assert config[f"{prefix}security.protocol"] == "SASL_PLAINTEXT"
        assert '"${env:PASSWORD}"' in config[f"{prefix}sasl.jaas.config"]
        # [connect.client] has the last word.
        assert config[f"{prefix}sasl.mechanism"] == "SCRAM-SHA-512"
        assert config[f"{prefix}client.rack"] == "r1"
    assert config["database.password"] == "${env:SOURCE}"
    assert debezium_client(replace(pipeline(), kafka=Kafka("k:1")), "x.") == {
        "x.sasl.mechanism": "SCRAM-SHA-512",
        "x.client.rack": "r1",
    }


def test_a_reference_of_connects_own_replaces_the_password() -> None:
    vault = "${vault:db/s1:password}"
    given = replace(pipeline().sources[0], connect_password=vault)
    assert connector_config(pipeline(), given)["database.password"] == vault


@pytest.mark.parametrize(
    ("converter", "prefix"),
    [
        ("apicurio", "value.converter.apicurio.rest.request.ssl."),
        ("apicurio", "value.converter.apicurio.registry.tls."),
        ("confluent", "value.converter.schema.registry.ssl."),
    ],
)
def test_a_converter_trusts_the_registrys_ca(converter: str, prefix: str) -> None:
    found = registry_tls(Kafka("k:1", avro_converter=converter, schema_registry_tls=STORES))
    assert found[f"{prefix}truststore.location"] == "/ca.p12"
    assert found[f"{prefix}truststore.type"] == "PKCS12"
    assert found[f"{prefix}truststore.password"] == "${env:STORE}"
    assert found[f"{prefix}keystore.type"] == "JKS"
    assert registry_tls(Kafka("k:1", avro_converter=converter)) == {}
