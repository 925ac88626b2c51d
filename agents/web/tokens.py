"""Looks up the tokens of users: each time, so that a token can be changed without a restart."""

from __future__ import annotations

import ipaddress

from shardmerge.connectors.access.secrets import resolved
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.web import TOKEN, Web

LEAST_CHARACTERS = 20
"""A shorter token could be found by trying."""


def tokens_of(web: Web) -> dict[str, str]:
    """User → token.

    Raises:
        ConfigError: A token is missing or too short, or two users have the same one.
    """
    found: dict[str, str] = {}
    for user, text in web.tokens:
        token = resolved(text)
        if len(token) < LEAST_CHARACTERS:
            raise _wrong(f"the token of {user} has fewer than {LEAST_CHARACTERS} characters")
        if token in found.values():
            raise _wrong(f"the token of {user} is also that of another user")
        found[user] = token
    return found


def check_web(web: Web, host: str) -> None:
    """Check at start what ``parse_web`` cannot see: the tokens, and where the pages listen.

    Args:
        web: The table ``[web]``.
        host: Where the pages listen.

    Raises:
        ConfigError: The table cannot be used here.
    """
    tokens_of(web)
    if web.commands == TOKEN and not web.origin and not _is_loopback(host):
        raise _wrong(
            f"with commands = {TOKEN!r} and the web host {host!r} it needs origin",
            hint="put a proxy with HTTPS in front of the pages, and write its address as origin",
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _wrong(what: str, hint: str = "`openssl rand -hex 32` makes a token") -> ConfigError:
    return ConfigError(f"[web]: {what}", hint=hint, code="SM-6901")
