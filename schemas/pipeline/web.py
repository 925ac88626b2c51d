"""The table ``[web]``: who may give commands from the pages and from ``/api``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from shardmerge.schemas.model.errors import ConfigError

from .connector_properties import Properties
from .routes import check_keys
from .secrets import reference

OFF, TOKEN, PROXY = "off", "token", "proxy"
ACCESSES = (OFF, TOKEN, PROXY)
_ORIGIN = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:\d{1,5})?")
_HEADER = re.compile(r"[A-Za-z0-9-]+")
_OF_PROXY = {"proxies", "user_header", "groups_header", "groups", "sign_out"}
_PATH = re.compile(r"/[A-Za-z0-9_.~-][A-Za-z0-9_.~/?=&%-]*")
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,99}")


@dataclass(frozen=True, slots=True)
class Web:
    """Who may give commands from the pages and from ``/api``. Without the table nobody may.

    Attributes:
        commands: ``off``: the pages only show. ``token``: whoever knows one of ``tokens`` may give
            commands. ``proxy``: a proxy in front of the pages says who asks.
        origin: Address of the pages as browsers see it, such as ``https://pages.example.com``. It
            is required with ``proxy``, with HTTPS, and where a browser does not reach the worker
            through the loopback. Forms from another origin are refused.
        tokens: With ``token``: name of a user → where the user's token is, ``env:NAME`` or
            ``file:PATH``. A token has at least 20 characters.
        proxies: With ``proxy``: the addresses or networks of the proxies, such as ``10.0.0.5`` or
            ``10.1.0.0/24``. Headers from any other address do not count.
        user_header: With ``proxy``: the header in which the proxy names the user.
        groups_header: With ``proxy``: the header with the user's groups, separated by commas; ""
            for none.
        groups: With ``proxy``: the groups that may give commands. Without any, every user whom the
            proxy lets through may.
        sign_out: With ``proxy``: the path at which the proxy ends a user's session, such as
            ``/oauth2/sign_out``. The pages link to it; "" for no link.
    """

    commands: str = OFF
    origin: str = ""
    tokens: Properties = ()
    proxies: tuple[str, ...] = ()
    user_header: str = "X-Forwarded-User"
    groups_header: str = ""
    groups: tuple[str, ...] = ()
    sign_out: str = ""


def parse_web(entry: object) -> Web:
    """Read the table ``[web]``.

    Args:
        entry: Its keys.

    Raises:
        ConfigError: A key is unknown, missing, or not usable.
    """
    if not isinstance(entry, Mapping):
        raise _wrong(f"must be a table, not {entry!r}")
    check_keys(entry, sorted(f.name for f in fields(Web)), "[web]")
    values: dict[str, Any] = {}
    for spec in fields(Web):
        if spec.name in entry:
            values[spec.name] = _value(spec.name, str(spec.type), entry[spec.name])
    web = Web(**values)
    if web.commands not in ACCESSES:
        raise _wrong(
            f"commands must be {', '.join(ACCESSES[:-1])} or {ACCESSES[-1]}, not {web.commands!r}"
        )
    if web.origin and not _ORIGIN.fullmatch(web.origin):
        raise _wrong(
            f"origin must be http:// or https:// and a host, without a path, not {web.origin!r}"
        )
    _of_token(web, entry)
    _of_proxy(web, entry)
    return web


def _of_token(web: Web, entry: Mapping[str, Any]) -> None:
    if web.commands != TOKEN:
        if "tokens" in entry:
            raise _wrong(f"only commands = {TOKEN!r} has tokens")
        return
    if not web.tokens:
        raise _wrong(
            f"commands = {TOKEN!r} needs tokens",
            hint='[web.tokens] with a line for each user, such as olga = "env:OLGA_TOKEN"',
        )
    for user, text in web.tokens:
        if not _USER.fullmatch(user):
            raise _wrong(f"tokens: {user!r} is no name of a user")
        if reference(text) is None:
            # The text may be the token, so the message must not have it.
            raise _wrong(
                f"tokens: the token of {user} must be env:NAME or file:PATH",
                hint="the pipeline file is read by many; keep tokens out of it",
            )


def _of_proxy(web: Web, entry: Mapping[str, Any]) -> None:
    if web.commands != PROXY:
        if of_proxy := sorted(_OF_PROXY & set(entry)):
            raise _wrong(f"only commands = {PROXY!r} has {of_proxy[0]}")
        return
    for name in ("proxies", "origin"):
        if not getattr(web, name):
            raise _wrong(f"commands = {PROXY!r} needs {name}")
    for address in web.proxies:
        try:
            ipaddress.ip_network(address)
        except ValueError as error:
            raise _wrong(f"proxies: {address!r} is no address and no network: {error}") from None
    for name in ("user_header", "groups_header"):
        header = getattr(web, name)
        if not _HEADER.fullmatch(header) and (header or name == "user_header"):
            raise _wrong(f"{name} {header!r} is no name of a header")
    if bool(web.groups) != bool(web.groups_header):
        raise _wrong("groups and groups_header go together")
    if web.sign_out and not _PATH.fullmatch(web.sign_out):
        raise _wrong(f"sign_out must be a path of the proxy, not {web.sign_out!r}")


def _value(name: str, kind: str, value: Any) -> Any:
    if kind == "Properties":
        if isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values()):
            return tuple(sorted(value.items()))
        raise _wrong(f"{name} must be a table of texts")
    if kind == "str":
        if isinstance(value, str):
            return value
        raise _wrong(f"{name} must be of type str, not {value!r}", code="SM-5004")
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise _wrong(f"{name} must be a list of texts, not {value!r}", code="SM-5004")


def _wrong(what: str, *, hint: str = "", code: str = "SM-6901") -> ConfigError:
    return ConfigError(f"[web]: {what}", hint=hint, code=code)
