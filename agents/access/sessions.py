"""Sessions of users who logged in with a token, and the keys of their forms. Pure.

A session is a signed text in a cookie. The key of the signature is made from the user's token. So
every worker accepts the session, no worker stores it, and it ends when the token is changed.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

SESSION_S = 8 * 3600
"""Seconds after which a session ends, and the user logs in again."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session.

    Attributes:
        nonce: A random text, new at each login.
        expires_s: When it ends, in seconds since 1970.
    """

    user: str
    nonce: str
    expires_s: int


def user_of(token: str, tokens: Mapping[str, str]) -> str:
    """The user whose token it is; "" for a token that nobody has.

    Every token is compared, each in a time that does not depend on its text.

    Args:
        token: What somebody sent.
        tokens: User → token.
    """
    sent = sha256(token.encode("utf-8", "surrogatepass")).digest()
    found = ""
    for user, known in tokens.items():
        if hmac.compare_digest(sent, sha256(known.encode()).digest()):
            found = user
    return found


def cookie_of(session: Session, token: str, pipeline: str) -> str:
    """The signed text of a session.

    Args:
        session: The session.
        token: The user's token.
        pipeline: Name of the pipeline, for which alone the session counts.
    """
    user = base64.urlsafe_b64encode(session.user.encode()).decode().rstrip("=")
    text = f"{user}.{session.expires_s}.{session.nonce}"
    return f"{text}.{_signature(text, token, pipeline)}"


def session_of(
    cookie: str, tokens: Mapping[str, str], pipeline: str, now_s: float
) -> Session | None:
    """The session of a signed text; None if its signature is wrong, or its time is over.

    Args:
        cookie: See ``cookie_of``.
        tokens: User → token.
        pipeline: Name of the pipeline.
        now_s: Seconds since 1970.
    """
    text, _, signature = cookie.rpartition(".")
    parts = text.split(".")
    if len(parts) != 3 or not cookie.isascii() or not parts[1].isdecimal():
        return None
    try:
        user = base64.urlsafe_b64decode(parts[0] + "=" * (-len(parts[0]) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    token = tokens.get(user)
    if token is None or not hmac.compare_digest(signature, _signature(text, token, pipeline)):
        return None
    session = Session(user, parts[2], int(parts[1]))
    # A worker with a wrong clock must not make a session that lasts longer.
    return session if 0 < session.expires_s - now_s <= SESSION_S else None


def form_key(session: str, user: str) -> str:
    """The key that a form must have, so that no other site can send it.

    Args:
        session: A random text that only the user's browser knows.
        user: Name of the user.
    """
    return hmac.new(session.encode(), f"form of {user}".encode(), sha256).hexdigest()


def _signature(text: str, token: str, pipeline: str) -> str:
    key = hmac.new(token.encode(), f"shardmerge session {pipeline}".encode(), sha256).digest()
    return hmac.new(key, text.encode(), sha256).hexdigest()
