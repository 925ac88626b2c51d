"""Pure: passwords that would lie readable in Connect's topic of configurations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardmerge.schemas.pipeline.secrets import lies_readable
from shardmerge.schemas.pipeline.settings import Pipeline

from .findings import Finding

_KAFKA = ("sasl.password", "sasl.oauthbearer.client.secret", "ssl.key.password", "sasl.jaas.config")
_SECRET = re.compile(r"password|secret|sasl\.jaas\.config", re.IGNORECASE)
"""In names of properties that are passed through, whose meaning only the connector knows."""
_TEXT = (
    "{what} would lie readable in the connectors' configurations, in a topic of Connect: "
    "write env:NAME or file:PATH instead"
)


def password_findings(pipeline: Pipeline) -> list[Finding]:
    """A warning for each password that connectors get as it is."""
    return [
        Finding(where, _TEXT.format(what=what), fault=False, code="SM-6402")
        for where, what, text in _passwords(pipeline)
        if lies_readable(text)
    ]


def _passwords(pipeline: Pipeline) -> Iterator[tuple[str, str, str]]:
    """Where each stands, its name, and its text."""
    for source in pipeline.sources:
        where = f"source {source.name}"
        yield where, "password", source.connect_password or source.password
        yield where, "truststore_password", source.tls.truststore_password
        yield where, "keystore_password", source.tls.keystore_password
    kafka = pipeline.kafka
    if kafka.row_format == "avro":
        yield "[kafka]", "schema_registry_password", kafka.schema_registry_password
        stores = kafka.schema_registry_tls
        yield "[kafka.schema_registry_tls]", "truststore_password", stores.truststore_password
        yield "[kafka.schema_registry_tls]", "keystore_password", stores.keystore_password
    for table, client in (
        ("[kafka.client]", kafka.client),
        ("[connect.client]", pipeline.connect.client),
    ):
        for key, text in client:
            if key in _KAFKA:
                yield table, key, text
    passed_on = [("[connect.connector]", pipeline.connect.connector)]
    passed_on += [
        (f"source {source.name}: connector", source.connector) for source in pipeline.sources
    ]
    for table, properties in passed_on:
        for key, text in properties:
            if _SECRET.search(key):
                yield table, key, text
