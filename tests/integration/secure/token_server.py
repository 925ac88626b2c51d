"""A server that gives OAuth tokens for client credentials, each signed with a key of its own."""

from __future__ import annotations

import json
import threading
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

_LIFE_S = 3600


class TokenServer(ThreadingHTTPServer):
    """Gives a token to each client that shows its secret.

    Args:
        port: On 127.0.0.1.
        secrets: Client's id → its secret. The id is the token's subject, so Kafka's user.
    """

    daemon_threads = True

    def __init__(self, port: int, secrets: Mapping[str, str]) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self._key = rsa.generate_private_key(65537, 2048)
        self._subjects = {
            f"Basic {b64encode(f'{name}:{secret}'.encode()).decode()}": name
            for name, secret in secrets.items()
        }
        self.url = f"http://127.0.0.1:{port}/token"

    def keys(self) -> str:
        """The public key, as brokers read it (RFC 7517)."""
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig",
            "n": _number(numbers.n), "e": _number(numbers.e),
        }  # fmt: skip
        return json.dumps({"keys": [key]})

    def token(self, authorization: str | None) -> str | None:
        """A token for the client of a header, None for nobody."""
        subject = self._subjects.get(authorization or "")
        if subject is None:
            return None
        now = int(time.time())
        claims = {"sub": subject, "iat": now, "exp": now + _LIFE_S, "scope": "kafka"}
        signed = f"{_part({'alg': 'RS256', 'kid': '1'})}.{_part(claims)}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_text(signature)}"


class _Handler(BaseHTTPRequestHandler):
    server: TokenServer

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        token = self.server.token(self.headers.get("Authorization"))
        if form.get("grant_type") != ["client_credentials"]:
            self._answer(HTTPStatus.BAD_REQUEST, {"error": "unsupported_grant_type"})
        elif token is None:
            self._answer(HTTPStatus.UNAUTHORIZED, {"error": "invalid_client"})
        else:
            answer = {"access_token": token, "token_type": "Bearer", "expires_in": _LIFE_S}
            self._answer(HTTPStatus.OK, answer)

    def _answer(self, status: HTTPStatus, document: Mapping[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(server: TokenServer) -> Iterator[TokenServer]:
    """The server, while the context lasts."""
    with server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _part(document: Mapping[str, Any]) -> str:
    return _text(json.dumps(document).encode())


def _number(value: int) -> str:
    return _text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
