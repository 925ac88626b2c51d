"""The endpoint that gives OAuth tokens: how it is asked, and what is told when it gives none.

Source: RFC 6749, 4.4; librdkafka and Kafka's Java clients ask in the same way.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.connector_properties import Properties

from .secrets import resolved


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A POST for a token by the grant of client credentials."""

    url: str
    form: Mapping[str, str]
    headers: Mapping[str, str]


def token_request(oauth: Properties) -> TokenRequest:
    """What the endpoint is asked.

    Args:
        oauth: Keys of ``[kafka.client]`` behind ``sasl.oauthbearer.`` → values.

    Raises:
        ConfigError: The secret is not where the pipeline file says.
    """
    found = dict(oauth)
    form = {"grant_type": "client_credentials"}
    if "scope" in found:
        form["scope"] = resolved(found["scope"])
    client, secret = resolved(found["client.id"]), resolved(found["client.secret"])
    headers = {"Authorization": f"Basic {b64encode(f'{client}:{secret}'.encode()).decode()}"}
    return TokenRequest(resolved(found["token.endpoint.url"]), form, headers)


def no_token(url: str, why: str) -> StackError:
    """The error of an endpoint that gives no token."""
    return StackError(
        f"the token endpoint {url} gives no token: {why}",
        hint="are sasl.oauthbearer.client.id and client.secret of [kafka.client] right, and does "
        "the endpoint run?",
        code="SM-4112",
    )


def no_answer(seconds: float) -> str:
    """Why there is no token when the endpoint says nothing."""
    return f"no answer within {seconds:g} s"


def silence_of(oauth: Properties, timeout_s: float) -> StackError | None:
    """The error of an endpoint that says nothing for so long; None when it says anything.

    A client of librdkafka says nothing of such an endpoint for 20 seconds, and whoever ends the
    client waits as long (measured, 2.16). So the endpoint is asked before a client is made.

    Raises:
        ConfigError: The secret is not where the pipeline file says.
    """
    asked = token_request(oauth)
    body = urlencode(asked.form).encode()
    # A proxy of the environment cannot see this machine's own addresses.
    local = urlsplit(asked.url).hostname in ("127.0.0.1", "localhost")
    opener = build_opener(*([ProxyHandler({})] if local else []))
    try:
        # The pipeline's owner wrote the address.
        request = Request(asked.url, body, dict(asked.headers))  # noqa: S310
        opener.open(request, timeout=timeout_s).close()
    except HTTPError as refusal:
        refusal.close()
    except (OSError, HTTPException, ValueError) as error:
        why = error.reason if isinstance(error, URLError) else error
        if isinstance(why, TimeoutError):
            return no_token(asked.url, no_answer(timeout_s))
        # librdkafka tells what else is wrong, in its own words.
    return None
