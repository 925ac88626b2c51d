"""Keys and certificates for TLS connections to a server of MySQL, Connect or the registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from shardmerge.schemas.model.errors import ConfigError

from .routes import check_keys
from .secrets import reference

MODES = ("disabled", "preferred", "required", "verify-ca", "verify-identity")
"""As those of MySQL's own clients (``--ssl-mode``)."""
FOR_MARIADB = {
    "disabled": "disable",
    "required": "trust",
    "verify-ca": "verify-ca",
    "verify-identity": "verify-full",
}
"""Mode → the word of MariaDB's Java driver, which has none for ``preferred``."""
_FILES = ("ca", "certificate", "key", "truststore", "keystore")


@dataclass(frozen=True, slots=True)
class Tls:
    """A table ``tls``. Paths are absolute; passwords may be ``env:NAME`` or ``file:PATH``.

    Attributes:
        mode: For MySQL servers: ``disabled``, ``preferred``, ``required`` (encrypted, but the
            server is not checked), ``verify-ca`` (its certificate is from a CA that is trusted), or
            ``verify-identity`` (and names the host). "" leaves it to the client library: today
            encrypted where the server offers it, and not checked.
        ca: File of the CAs that are trusted, in PEM; "" is those of the system.
        certificate: File of our own certificate with its chain, in PEM.
        key: File of its private key, in PEM.
        key_password: The key's password.
        truststore: For connectors, which run in Java: file of the CAs, in PKCS#12 or JKS, on the
            machines of Connect's workers; "" is that of the Java runtime.
        truststore_password: That file's password.
        keystore: For connectors: file with certificate and key, in PKCS#12 or JKS, on the machines
            of Connect's workers.
        keystore_password: That file's password.
    """

    mode: str = ""
    ca: str = ""
    certificate: str = ""
    key: str = ""
    key_password: str = ""
    truststore: str = ""
    truststore_password: str = ""
    keystore: str = ""
    keystore_password: str = ""


def parse_tls(entry: object, where: str, *, of_mysql: bool, in_java: bool) -> Tls:
    """Read a table ``tls``.

    Args:
        entry: Its keys.
        where: Its name, for errors.
        of_mysql: Whether it has a ``mode``, and must have one.
        in_java: Whether clients in Java connect to the server, too.

    Raises:
        ConfigError: A key is unknown, missing, or not usable.
    """
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where} must be a table, not {entry!r}", code="SM-5702")
    known = [f.name for f in fields(Tls) if in_java or not f.name.startswith(("trust", "keystore"))]
    if not of_mysql:
        known.remove("mode")
    check_keys(entry, known, where)
    for name, value in entry.items():
        _check_text(name, value, where)
    tls = Tls(**entry)
    if of_mysql and tls.mode not in MODES:
        raise ConfigError(
            f"{where}: mode must be {', '.join(MODES[:-1])} or {MODES[-1]}, not {tls.mode!r}",
            code="SM-5702",
        )
    if tls.ca and of_mysql and not tls.mode.startswith("verify"):
        raise ConfigError(
            f"{where}: mode {tls.mode!r} does not check the server, so it has no ca",
            hint='mode = "verify-identity" checks its CA and its name, "verify-ca" only the CA',
            code="SM-5702",
        )
    if bool(tls.certificate) != bool(tls.key):
        raise ConfigError(f"{where}: certificate and key go together", code="SM-5702")
    for owner in ("key", "truststore", "keystore"):
        if getattr(tls, f"{owner}_password") and not getattr(tls, owner):
            raise ConfigError(f"{where}: {owner}_password without {owner}", code="SM-5702")
    return tls


def _check_text(name: str, value: Any, where: str) -> None:
    if not isinstance(value, str):
        raise ConfigError(f"{where}: {name} must be of type str, not {value!r}", code="SM-5702")
    if name in _FILES and not value.startswith("/"):
        # The agents change their working directory, and Connect's workers have another one.
        raise ConfigError(
            f"{where}: {name} must be an absolute path, not {value!r}", code="SM-5702"
        )
    if name.endswith("_password"):
        reference(value)
