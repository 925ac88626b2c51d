"""Connections to MySQL, MariaDB and TiDB servers: the only place where they are made."""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol, TypeAlias

import pymysql
from pymysql.constants import CR
from pymysql.cursors import Cursor, DictCursor

from shardmerge.schemas.pipeline.tls import Tls

from .secrets import resolved
from .tls_context import client_context, tls_fault

_SYNTAX = 1064
Connection: TypeAlias = "pymysql.Connection[Cursor]"
TLS_FAILED = CR.CR_SSL_CONNECTION_ERROR
"""The number of the error when an encrypted connection is not possible, as in MySQL's clients."""
NO_PLUGIN = CR.CR_AUTH_PLUGIN_CANNOT_LOAD
"""The number of the error when the client lacks what a method of authentication needs."""
NOT_ADMITTED = frozenset(
    {
        1044,  # no right to the database
        1045,  # access denied
        1130,  # the host may not connect
        1251, NO_PLUGIN,  # the client lacks the user's method of authentication
        3118,  # the account is locked
        1820, 1862,  # the password has expired
        3159,  # the server takes encrypted connections only
        TLS_FAILED,
    }
)  # fmt: skip
"""Numbers of errors that no repetition mends: who connects, or how, must be changed.

Source: MySQL 8.0 Error Message Reference.
"""


_KEEP_ALIVE = {
    "TCP_KEEPIDLE": 30,
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 5,
    "TCP_USER_TIMEOUT": 80_000,
}
"""Seconds of silence before the first probe; seconds between probes; number of probes; milliseconds
(Linux) that sent bytes may stay unacknowledged."""


class Server(Protocol):
    """Where a server is and who logs in: a source, a target, or the sink's address of it."""

    @property
    def host(self) -> str:
        """Name or address."""

    @property
    def port(self) -> int:
        """Of its MySQL protocol."""

    @property
    def user(self) -> str:
        """Who logs in."""

    @property
    def password(self) -> str:
        """That user's password, or where it is."""

    @property
    def tls(self) -> Tls:
        """How the connection is encrypted and checked."""


def connect(server: Server, **options: Any) -> Connection:
    """A connection; ``options`` are PyMySQL's.

    Raises:
        pymysql.MySQLError: As PyMySQL does. Its number is ``TLS_FAILED`` when TLS fails, and
            ``NO_PLUGIN`` when the password cannot be sent because a package is missing.
        ConfigError: The password, or a file, is not where the pipeline file says.
    """
    try:
        return ServerConnection(**connection_arguments(server), **options)
    except pymysql.MySQLError as error:
        if fault := tls_fault(error):
            where = f"{server.host}:{server.port}"
            raise pymysql.OperationalError(
                TLS_FAILED, f"MySQL server at {where}: {fault}"
            ) from error
        raise
    except RuntimeError as error:
        if "cryptography" not in str(error):
            raise
        raise pymysql.OperationalError(
            NO_PLUGIN,
            f"MySQL server at {server.host}:{server.port} wants the password of {server.user!r}"
            " encrypted with its key (caching_sha2_password or sha256_password), for which this"
            " Python lacks the package cryptography: install PyMySQL[rsa], or encrypt the"
            " connection",
        ) from error


def keep_alive(connection: Connection) -> None:
    """Let the system notice within a minute or two that the server's machine is gone.

    For connections whose statements have no time limit, since some take hours. Without this one
    waits for ever if the other end disappeared without closing it.
    """
    sock = getattr(connection, "_sock", None)
    if isinstance(sock, socket.socket) and sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class ServerConnection(pymysql.connections.Connection):
    """PyMySQL's connection; all that check no certificate share one TLS context.

    PyMySQL makes a context for each connection and loads the system's CAs into it, which takes
    20 ms of a processor. A connection that checks no certificate does not need them.
    """

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        own: Any = super()
        made: ssl.SSLContext = own._create_ssl_ctx(sslp) if sslp else _unchecked()
        return made


@cache
def _unchecked() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def show_status(cursor: DictCursor, *words: str) -> Sequence[Mapping[str, Any]]:
    """The rows of SHOW … STATUS, by the first of some words that the server knows.

    Raises:
        pymysql.MySQLError: The server knows none of them, or refuses.
    """
    for word in words:
        try:
            cursor.execute(f"SHOW {word} STATUS")
        except pymysql.ProgrammingError as error:
            if error.args[0] != _SYNTAX or word == words[-1]:
                raise
        else:
            return cursor.fetchall()
    raise ValueError("no word is given")


def mysql_error(error: Exception) -> str:
    """What a server, or the attempt to reach it, said."""
    return str(error.args[1] if len(error.args) > 1 else error)


def connection_arguments(server: Server) -> dict[str, Any]:
    """PyMySQL's arguments that say where the server is, who logs in, and how it is encrypted.

    Raises:
        ConfigError: See ``connect``.
    """
    return {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": resolved(server.password),
        **_tls_arguments(server.tls),
    }


def _tls_arguments(tls: Tls) -> dict[str, Any]:
    if tls.mode in ("", "preferred"):
        if not tls.certificate:
            return {}
    elif tls.mode == "disabled":
        return {"ssl_disabled": True}
    context = client_context(tls, checks_names=tls.mode == "verify-identity")
    if not tls.mode.startswith("verify"):
        context.verify_mode = ssl.CERT_NONE
    return {"ssl": context}


@contextmanager
def readable_path(data: bytes | bytearray) -> Iterator[str]:
    """A path under which this process can read the bytes, for LOAD DATA LOCAL.

    They stay in memory if the system has anonymous files (Linux).
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("shardmerge-load")
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.TemporaryDirectory(prefix="shardmerge-") as folder:
            path = os.path.join(folder, "rows")
            with open(path, "wb") as file:
                file.write(data)
            yield path
