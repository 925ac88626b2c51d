"""Passwords that stand outside the pipeline file: ``env:NAME`` and ``file:PATH``.

Such a text stays what it is in the pipeline's settings. A process looks up the value when it
connects (``connectors.access.secrets``). A connector's configuration gets a reference of Connect's
instead, which the worker looks up: Connect stores configurations in a topic that many can read.

Source: Apache Kafka documentation, "Externalizing Secrets": EnvVarConfigProvider and
DirectoryConfigProvider, here under the names ``env`` and ``directory``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from shardmerge.schemas.model.errors import ConfigError

ENVIRONMENT, FILE = "env", "file"
PROVIDERS = {
    "env": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "directory": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
}
"""Name → class of the providers that a worker's ``config.providers`` must list."""
_REFERENCE_OF_CONNECT = re.compile(r"\$\{[^}]*:[^}]*\}")


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a value is found: ``kind`` is ``env`` or ``file``, ``name`` the variable or path."""

    kind: str
    name: str


def reference(text: str) -> Reference | None:
    """The reference that a text is, or None for a value.

    Raises:
        ConfigError: It begins like a reference, and names nothing that can be looked up.
    """
    kind, colon, name = text.partition(":")
    if not colon or kind not in (ENVIRONMENT, FILE):
        return None
    if kind == ENVIRONMENT and not re.fullmatch(r"\w+", name):
        raise ConfigError(
            f"{text!r} names no environment variable", hint="write env:NAME", code="SM-5701"
        )
    if kind == FILE and not (name.startswith("/") and PurePosixPath(name).name):
        raise ConfigError(
            f"{text!r} names no file",
            hint="write file: and the whole path, as file:/run/secrets/x",
            code="SM-5701",
        )
    return Reference(kind, name)


def file_for_connect(path: str) -> str:
    """Connect's reference to the whole content of a file on the worker's machine."""
    found = PurePosixPath(path)
    return f"${{directory:{found.parent}:{found.name}}}"


def for_connect(text: str) -> str:
    """A value, or a reference, as a connector's configuration has it."""
    found = reference(text)
    if found is None:
        return text
    return f"${{env:{found.name}}}" if found.kind == ENVIRONMENT else file_for_connect(found.name)


def lies_readable(text: str) -> bool:
    """Whether a password would be readable in a connector's configuration."""
    return bool(text) and reference(text) is None and not _REFERENCE_OF_CONNECT.search(text)
