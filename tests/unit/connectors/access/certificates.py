"""Authorities and servers with TLS for the tests of this folder."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.authority import Authority, Identity

PASSWORD = "of the stores"


def authority(folder: Path, name: str = "test CA") -> Authority:
    """One with files in a folder."""
    return Authority(folder, PASSWORD, name)


@contextmanager
def answering(identity: Identity, ca: Path | None = None) -> Iterator[int]:
    """A server of HTTPS on a port of this machine, which gives each request an empty list.

    With ``ca`` it wants a client's certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    if ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(ca)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]

        def serve() -> None:
            while True:
                try:
                    plain, _ = listener.accept()
                except OSError:
                    return
                with suppress(OSError), plain, context.wrap_socket(plain, server_side=True) as tls:
                    tls.recv(65536)
                    tls.sendall(
                        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                        b"Connection: close\r\nContent-Length: 2\r\n\r\n[]"
                    )

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield port
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(timeout=5)
