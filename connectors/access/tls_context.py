"""TLS of clients in Python: what they trust, what they show, and what went wrong."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.kafka_client import AiokafkaClient
from shardmerge.schemas.pipeline.tls import Tls

from .secrets import resolved

_CUT = "UNEXPECTED_EOF_WHILE_READING"
"""OpenSSL's reason when the other end hangs up."""


def client_context(tls: Tls, *, checks_names: bool = True, ca_text: str = "") -> ssl.SSLContext:
    """What a client trusts and shows; it always checks the server's certificate.

    Args:
        tls: Its files; ``mode`` is not looked at.
        checks_names: Whether the server's certificate must name the host.
        ca_text: CAs in PEM, besides those of ``tls.ca``.

    Raises:
        ConfigError: A file cannot be read, or is not what it must be.
    """
    if not tls.ca:
        context = ssl.create_default_context(cadata=ca_text or None)
    else:
        try:
            context = ssl.create_default_context(cafile=tls.ca, cadata=ca_text or None)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"the CA file {tls.ca} cannot be used: {_reason_text(error)}", code="SM-5706"
            ) from None
    # Python 3.13 refuses by default what MySQL servers make for themselves.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = checks_names
    if tls.certificate:
        try:
            # Without a password OpenSSL would ask for one on the terminal.
            password = resolved(tls.key_password)
            context.load_cert_chain(tls.certificate, tls.key, lambda: password)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"certificate {tls.certificate} with key {tls.key} cannot be used: "
                f"{_reason_text(error)}",
                hint="both must be in PEM and belong together; is key_password right?",
                code="SM-5706",
            ) from None
    return context


def broker_context(client: AiokafkaClient) -> ssl.SSLContext | None:
    """The context for Kafka's brokers; None without TLS.

    Raises:
        ConfigError: A file cannot be used.
    """
    if "SSL" not in client.protocol.split("_"):
        return None
    tls = Tls(
        ca=client.ca,
        certificate=client.certificate,
        key=client.key,
        key_password=client.key_password,
    )
    return client_context(tls, checks_names=client.checks_names, ca_text=resolved(client.ca_text))


def handshake_fault(host: str, port: int, context: ssl.SSLContext, timeout_s: float) -> str:
    """What is wrong when a TLS connection is tried; "" when nothing is, or nobody answers."""
    try:
        with (
            socket.create_connection((host, port), timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return ""
    except OSError as error:
        return tls_fault(error)


def tls_fault(error: BaseException) -> str:
    """What is wrong with TLS according to an error, or one of its causes; "" when nothing is.

    A connection that ends in the middle says nothing of TLS: the server may just have died.
    """
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the server's certificate is not accepted: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError) and not _has_ended(cause):
            return f"TLS failed: {_reason_text(cause)}"
    return ""


def _has_ended(error: ssl.SSLError) -> bool:
    ends = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
    return isinstance(error, ends) or getattr(error, "reason", "") == _CUT


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and everything that it wraps, in whatever way its library does so."""
    open_, seen = [error], set[int]()
    while open_:
        cause = open_.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        wrapped = (
            cause.__cause__,
            cause.__context__,
            getattr(cause, "reason", None),  # urllib3
            getattr(cause, "original_exception", None),  # PyMySQL
            *cause.args,
        )
        open_ += [inner for inner in wrapped if isinstance(inner, BaseException)]


def _reason_text(error: OSError) -> str:
    """The error's text without the place in Python's source."""
    return (error.strerror or str(error) or type(error).__name__).partition(" (_ssl.c")[0]
