"""Connections to MySQL, MariaDB and TiDB servers: the only place where they are made."""

from __future__ import annotations

import ssl
from typing import Any, Protocol, TypeAlias

import pymysql
from pymysql.constants import CR
from pymysql.cursors import Cursor

from shardmerge.schemas.pipeline.tls import Tls

from .secrets import resolved
from .tls_context import client_context, tls_fault

Connection: TypeAlias = "pymysql.Connection[Cursor]"
TLS_FAILED = CR.CR_SSL_CONNECTION_ERROR
"""The number of the error when an encrypted connection is not possible, as in MySQL's clients."""
NOT_ADMITTED = frozenset(
    {
        1044,  # no right to the database
        1045,  # access denied
        1130,  # the host may not connect
        1251, 2059,  # the client lacks the user's method of authentication
        3118,  # the account is locked
        1820, 1862,  # the password has expired
        3159,  # the server takes encrypted connections only
        TLS_FAILED,
    }
)  # fmt: skip
"""Numbers of errors that no repetition mends: who connects, or how, must be changed.

Source: MySQL 8.0 Error Message Reference.
"""


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
        pymysql.MySQLError: As PyMySQL does; with ``TLS_FAILED`` and what is wrong, when TLS is.
        ConfigError: The password, or a file, is not where the pipeline file says.
    """
    try:
        return pymysql.connect(**connection_arguments(server), **options)
    except pymysql.MySQLError as error:
        if fault := tls_fault(error):
            where = f"{server.host}:{server.port}"
            raise pymysql.OperationalError(
                TLS_FAILED, f"MySQL server at {where}: {fault}"
            ) from error
        raise


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
