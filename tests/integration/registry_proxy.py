"""A schema registry behind HTTP's basic authentication, as a reverse proxy gives it."""

from __future__ import annotations

import ssl
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

USER = "shardmerge"


class RegistryProxy(ThreadingHTTPServer):
    """Passes on what comes with the user's password.

    Args:
        url: Of the registry's interface; everything of its server is passed on.
        context: For TLS; None: without.

    Attributes:
        password: Of ``USER``; it may change at any time.
        url: Of the same interface behind the proxy.
    """

    daemon_threads = True

    def __init__(self, url: str, password: str, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = urlsplit(url)
        self.password = password
        here = self.behind._replace(netloc=f"127.0.0.1:{self.server_port}")
        self.url = here.geturl()
        if context is not None:
            # Not while it accepts: a client that is refused must not stop the others.
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
            self.url = here._replace(scheme="https").geturl()

    def lets_in(self, authorization: str | None) -> bool:
        pair = b64encode(f"{USER}:{self.password}".encode()).decode()
        return authorization == f"Basic {pair}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that is refused has the error; this process says nothing of it."""
        if not isinstance(sys.exception(), (ssl.SSLError, ConnectionError)):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    server: RegistryProxy

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.server.lets_in(self.headers.get("Authorization")):
            headers = {"WWW-Authenticate": 'Basic realm="registry"'}
            self._answer(HTTPStatus.UNAUTHORIZED, headers, b"")
            return
        behind = self.server.behind
        connection = HTTPConnection(behind.hostname or "", behind.port, timeout=30)
        try:
            # The registry asks for nobody: what is ours stays here.
            left = {"host", "authorization", "connection", "content-length"}
            headers = {k: v for k, v in self.headers.items() if k.lower() not in left}
            connection.request(self.command, self.path, body or None, headers)
            answer = connection.getresponse()
            kind = {"Content-Type": answer.headers.get("Content-Type", "application/json")}
            self._answer(answer.status, kind, answer.read())
        except (OSError, HTTPException):
            self._answer(HTTPStatus.BAD_GATEWAY, {}, b"")
        finally:
            connection.close()

    do_GET = do_POST = do_PUT = do_DELETE = _pass_on  # noqa: N815 - the server's names

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        # Java's client would keep an HTTP/1.0 connection that is not said to close, and its next
        # request may meet the end of it.
        headers = {**headers, "Content-Length": str(len(body)), "Connection": "close"}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def registry_proxy(
    url: str, password: str, context: ssl.SSLContext | None = None
) -> Iterator[RegistryProxy]:
    """The proxy, while the context lasts."""
    with RegistryProxy(url, password, context) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
