"""[kafka.client]: what is taken, what is refused and why, and what each library is told."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.kafka_client import (
    KNOWN,
    REFUSED,
    AiokafkaClient,
    aiokafka_client,
    java_client,
    librdkafka_client,
    parse_client,
)

SCRAM = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanisms": "scram-sha-512",
    "sasl.username": "me",
    "sasl.password": "env:PASSWORD",
    "ssl.ca.location": "/ca.pem",
}
MUTUAL = {
    "security.protocol": "ssl",
    "ssl.ca.location": "/ca.pem",
    "ssl.certificate.location": "/etc/k/client.pem",
    "ssl.key.location": "/etc/k/client.key",
    "ssl.key.password": "file:/etc/k/password",
}
TOKENS = {
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://login/token",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": "env:SECRET",
    "sasl.oauthbearer.scope": "kafka",
}
_MODULE = "org.apache.kafka.common.security"


def test_a_user_with_a_password_is_told_to_each_library() -> None:
    client = parse_client(SCRAM)
    assert librdkafka_client(client, lambda text: text.replace("env:PASSWORD", "p")) == {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "p",
        "ssl.ca.location": "/ca.pem",
    }
    assert aiokafka_client(client) == AiokafkaClient(
        protocol="SASL_SSL",
        mechanism="SCRAM-SHA-512",
        username="me",
        password="env:PASSWORD",
        ca="/ca.pem",
    )
    assert java_client(client) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": (
            f'{_MODULE}.scram.ScramLoginModule required username="me" password="${{env:PASSWORD}}";'
        ),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
    }


def test_plain_has_a_login_module_of_its_own_and_quotes_are_escaped() -> None:
    client = parse_client(SCRAM | {"sasl.mechanisms": "PLAIN", "sasl.password": 'a"b\\c'})
    assert java_client(client)["sasl.jaas.config"] == (
        f'{_MODULE}.plain.PlainLoginModule required username="me" password="a\\"b\\\\c";'
    )


def test_a_certificate_and_its_key_are_files_to_us_and_references_to_java() -> None:
    client = parse_client(MUTUAL)
    assert aiokafka_client(client) == AiokafkaClient(
        protocol="SSL",
        ca="/ca.pem",
        certificate="/etc/k/client.pem",
        key="/etc/k/client.key",
        key_password="file:/etc/k/password",
    )
    assert java_client(client) == {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "${directory:/etc/k:client.pem}",
        "ssl.keystore.key": "${directory:/etc/k:client.key}",
        "ssl.key.password": "${directory:/etc/k:password}",
    }


def test_one_file_with_both_is_a_keystore_to_java() -> None:
    both = {"ssl.certificate.location": "/both.pem", "ssl.key.location": "/both.pem"}
    java = java_client(parse_client({"security.protocol": "ssl", **both}))
    assert java["ssl.keystore.location"] == "/both.pem"
    assert "ssl.keystore.key" not in java


def test_tokens_come_from_the_same_endpoint_everywhere() -> None:
    client = parse_client(TOKENS)
    assert librdkafka_client(client, str)["sasl.oauthbearer.method"] == "oidc"
    assert dict(aiokafka_client(client).oauth)["token.endpoint.url"] == "https://login/token"
    java = java_client(client)
    assert java["sasl.oauthbearer.token.endpoint.url"] == "https://login/token"
    assert java["sasl.jaas.config"] == (
        f"{_MODULE}.oauthbearer.OAuthBearerLoginModule required "
        'clientId="me" clientSecret="${env:SECRET}" scope="kafka";'
    )


def test_names_need_not_be_checked() -> None:
    off = {"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": "none"}
    client = parse_client(off)
    assert not aiokafka_client(client).checks_names
    assert java_client(client)["ssl.endpoint.identification.algorithm"] == ""


def test_times_are_the_same_in_each_library() -> None:
    client = parse_client({"connections.max.idle.ms": 60000})
    assert java_client(client) == {"connections.max.idle.ms": "60000"}
    assert aiokafka_client(client).times == (("connections_max_idle_ms", 60000),)


def test_nothing_is_told_of_an_empty_table() -> None:
    assert java_client(()) == librdkafka_client((), str) == {}
    assert aiokafka_client(()) == AiokafkaClient()


@pytest.mark.parametrize("key", sorted(REFUSED))
def test_a_property_that_cannot_be_translated_is_refused_with_the_reason(key: str) -> None:
    assert key not in KNOWN
    with pytest.raises(ConfigError) as refused:
        parse_client({key: "x"})
    assert REFUSED[key] in refused.value.message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"group.id": "g"}, "no property of connections"),
        ({"sasl": {"password": "x"}}, "write the whole key in quotes"),
        ({"sasl.mechanisms": "GSSAPI"}, "Kerberos"),
        ({"sasl.mechanisms": "AWS_MSK_IAM"}, "is not taken"),
        ({"security.protocol": "tls"}, "must be plaintext, ssl"),
        ({"security.protocol": "ssl"}, "sasl.mechanism has no effect"),
        ({"security.protocol": "sasl_plaintext"}, "ssl.ca.location has no effect"),
        ({"sasl.password": ""}, "sasl.password is missing"),
        ({"sasl.oauthbearer.scope": "s"}, "has no effect with"),
        ({"sasl.mechanisms": "OAUTHBEARER"}, "token.endpoint.url is missing"),
        ({"ssl.ca.location": "ca.pem"}, "absolute path"),
        ({"ssl.ca.pem": "x"}, "exclude each other"),
        ({"ssl.key.location": "/k"}, "go together"),
        ({"ssl.endpoint.identification.algorithm": "dns"}, "https or none"),
        ({"metadata.max.age.ms": "1 h"}, "number of milliseconds"),
        ({"sasl.password": "env:MY PASSWORD"}, "no environment variable"),
        ({"sasl.password": ["x"]}, "must be a text"),
    ],
)
def test_what_makes_no_sense_is_an_error(change: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_client(SCRAM | change)
