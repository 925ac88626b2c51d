"""What Faust is told of [kafka.client]: its own consumer, producer and topics use it."""

from __future__ import annotations

from typing import Any

import faust
from faust.auth import OAuthCredentials

from shardmerge.connectors.access.aiokafka_arguments import aiokafka_arguments
from shardmerge.schemas.pipeline.settings import Kafka


def faust_settings(kafka: Kafka) -> dict[str, Any]:
    """Settings of a Faust app that say how it connects to Kafka.

    Raises:
        ConfigError: A file or a password is not where the pipeline file says.
    """
    servers = kafka.bootstrap_servers.split(",")
    found: dict[str, Any] = {"broker": [f"kafka://{server.strip()}" for server in servers]}
    arguments = aiokafka_arguments(kafka)
    for name in ("connections_max_idle_ms", "metadata_max_age_ms"):
        if name in arguments:
            found |= {f"consumer_{name}": arguments[name], f"producer_{name}": arguments[name]}
    context = arguments["ssl_context"]
    if "sasl_oauth_token_provider" in arguments:
        provider = arguments["sasl_oauth_token_provider"]
        found["broker_credentials"] = OAuthCredentials(oauth_cb=provider, ssl_context=context)
    elif "sasl_mechanism" in arguments:
        found["broker_credentials"] = faust.SASLCredentials(
            username=arguments["sasl_plain_username"],
            password=arguments["sasl_plain_password"],
            mechanism=arguments["sasl_mechanism"],
            ssl_context=context,
        )
    elif context is not None:
        found["broker_credentials"] = faust.SSLCredentials(context)
    return found
