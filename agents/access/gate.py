"""The rules: who sent a request, and whether a form or a call of ``/api`` counts. Pure."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from shardmerge.schemas.model.errors import AccessDenied
from shardmerge.schemas.pipeline.web import OFF, PROXY, Web

from .calls import Asker, Call
from .sessions import form_key, session_of, user_of

_BEARER = "bearer "
_LONGEST_USER = 200


def asker_of(web: Web, tokens: Mapping[str, str], pipeline: str, call: Call, now_s: float) -> Asker:
    """Who sent a request.

    Args:
        web: The table ``[web]`` of the pipeline file.
        tokens: User → token; empty unless users have tokens.
        pipeline: Name of the pipeline.
        call: The request.
        now_s: Seconds since 1970.
    """
    if web.commands == OFF:
        return Asker(denied=_denied("SM-6902", "commands from the pages are switched off"))
    if web.commands == PROXY:
        return _behind_proxy(web, call)
    sent = call.header("authorization")
    if sent:
        user = user_of(bearer(call), tokens)
        if user:
            return Asker(user)
        return Asker(denied=_denied("SM-6904", "nobody has the token of the Authorization header"))
    session = session_of(call.cookie, tokens, pipeline, now_s)
    if session is None:
        return Asker(denied=_denied("SM-6903", "nobody is signed in, and no token was sent"))
    return Asker(session.user, session.nonce)


def bearer(call: Call) -> str:
    """The token of the Authorization header; "" without one."""
    sent = call.header("authorization")
    return sent[len(_BEARER) :].strip() if sent.lower().startswith(_BEARER) else ""


def check_origin(web: Web, call: Call) -> None:
    """Raise ``AccessDenied`` unless a form was sent from one of these pages.

    A browser says where a form comes from: in ``Origin``, and newer ones in ``Sec-Fetch-Site``,
    too. A request with neither is refused.
    """
    site = call.headers.get("sec-fetch-site", ())
    origin = call.headers.get("origin", ())
    own = _own_origin(web, call)
    same_site = site in ((), ("same-origin",))
    if own and same_site and (origin or site) and origin in ((), (own,)):
        return
    told = origin[0] if origin else "nowhere"
    raise _denied("SM-6906", f"the form was sent from {told[:200]!r}, not from these pages")


def check_form(web: Web, call: Call, asker: Asker, key: str) -> None:
    """Raise ``AccessDenied`` unless a form counts: from these pages, and with the session's key.

    Args:
        web: The table ``[web]``.
        call: The request.
        asker: Who sent it.
        key: The form's key; "" without one.
    """
    if asker.denied is not None:
        raise asker.denied
    check_origin(web, call)
    wanted = form_key(asker.session, asker.user)
    if not asker.session or not hmac.compare_digest(wanted.encode(), key.encode()):
        raise _denied("SM-6907", "the form does not have the key of this session")


def check_api(web: Web, call: Call, asker: Asker) -> None:
    """Raise ``AccessDenied`` unless a call of ``/api`` may give commands.

    A session's cookie does not count here. Behind a proxy the user may be a browser, so a call that
    tells its origin must come from these pages.
    """
    if asker.denied is not None:
        raise asker.denied
    if web.commands != PROXY:
        if not call.header("authorization"):
            raise _denied("SM-6903", "the call has no token: send Authorization: Bearer TOKEN")
        return
    if call.headers.get("origin") or call.headers.get("sec-fetch-site", ("none",)) != ("none",):
        check_origin(web, call)


def _behind_proxy(web: Web, call: Call) -> Asker:
    if not _is_proxy(web, call.address):
        return Asker(denied=_denied("SM-6908", f"{call.address} is not one of the proxies"))
    user = call.header(web.user_header)
    # Names go into records and logs, so they hold no characters that cannot be printed.
    if not user or len(user) > _LONGEST_USER or not user.isprintable():
        return Asker(
            denied=_denied("SM-6908", f"the proxy names no user in one header {web.user_header}")
        )
    if web.groups:
        groups = {group.strip() for group in call.header(web.groups_header).split(",")}
        if not groups & set(web.groups):
            return Asker(
                user, denied=_denied("SM-6909", f"{user} is in none of the groups that may command")
            )
    return Asker(user, call.cookie)


def _is_proxy(web: Web, address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return any(found in ipaddress.ip_network(each) for each in web.proxies)


def _own_origin(web: Web, call: Call) -> str:
    """The origin of these pages; "" if that cannot be known."""
    if web.origin:
        return web.origin
    host = call.header("host")
    # Another name may lead to this address, too, and belong to somebody else (DNS rebinding).
    return f"http://{host}" if _is_loopback(host) else ""


def _is_loopback(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _denied(code: str, what: str) -> AccessDenied:
    return AccessDenied(what, hint=_HINTS[code], code=code)


_HINTS = {
    "SM-6902": "the table [web] of the pipeline file says who may give commands; `shardmerge "
    "command` gives them from a shell",
    "SM-6903": "sign in at /login",
    "SM-6904": "[web.tokens] says where each user's token is",
    "SM-6906": "open the page again and send its form; behind a proxy or another name, set origin "
    "of [web]",
    "SM-6907": "open the page again and send its form; the browser must accept its cookie",
    "SM-6908": "open the pages through the proxy; proxies and user_header of [web] say what counts",
    "SM-6909": "groups of [web] says which groups may give commands",
}
