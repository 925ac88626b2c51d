"""Sessions of HTTP: with a user and certificates for Kafka Connect's REST interface, or plain."""

from __future__ import annotations

import ssl
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import HTTPBasicAuth

from shardmerge.schemas.pipeline.settings import Connect
from shardmerge.schemas.pipeline.tls import Tls

from .secrets import resolved
from .tls_context import client_context


def session(connect: Connect) -> requests.Session:
    """A session with what the interface wants; ``close`` it.

    Raises:
        ConfigError: A password or a file is not where the pipeline file says.
    """
    made = session_to(connect.urls[0])
    if connect.user:
        # As bytes: a text would be taken for Latin-1.
        user, password = connect.user.encode(), resolved(connect.password).encode()
        made.auth = HTTPBasicAuth(user, password)
    if connect.tls != Tls():
        made.mount("https://", _TlsAdapter(client_context(connect.tls)))
        # Else the library would trust its own list of CAs, too.
        made.verify = connect.tls.ca or True
    return made


def session_to(url: str) -> requests.Session:
    """A session for an address; ``close`` it."""
    made = requests.Session()
    # A proxy of the environment cannot see this machine's own addresses.
    made.trust_env = urlsplit(url).hostname not in ("127.0.0.1", "localhost")
    return made


class _TlsAdapter(HTTPAdapter):
    """Connects with a context of ours."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **settings: Any) -> None:
        """Called by ``requests``."""
        super().init_poolmanager(*arguments, **settings, ssl_context=self._context)
