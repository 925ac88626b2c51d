"""What a local stack has besides when its connections are secured: settings of each server.

Nothing here is a password: each stands in a file of its own, which the settings name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from shardmerge.schemas.pipeline.settings import Connect, Kafka
from shardmerge.schemas.pipeline.tls import Tls

_FILE = "secured.json"


@dataclass(frozen=True, slots=True)
class Secured:
    """Further settings of a stack's servers.

    Attributes:
        kafka: Properties of the broker, instead of those of a plain one.
        kafka_java: Options of its Java.
        scram: Users that are made when the broker's storage is formatted, each an argument of
            ``kafka-storage.sh --add-scram``.
        kafka_client: How the health check connects, see ``kafka_client``.
        mysql: Options of each MySQL server.
        connect: Properties of the worker, besides or instead of those of a plain one.
        connect_java: Options of its Java.
        connect_user, connect_password, connect_tls: How the health check connects to the worker.
    """

    kafka: Mapping[str, str] = field(default_factory=dict)
    kafka_java: tuple[str, ...] = ()
    scram: tuple[str, ...] = ()
    kafka_client: tuple[tuple[str, str], ...] = ()
    mysql: tuple[str, ...] = ()
    connect: Mapping[str, str] = field(default_factory=dict)
    connect_java: tuple[str, ...] = ()
    connect_user: str = ""
    connect_password: str = ""
    connect_tls: Tls = field(default_factory=Tls)

    @property
    def is_on(self) -> bool:
        """Whether there is anything to secure."""
        return self != Secured()

    def kafka_access(self, servers: str) -> Kafka:
        """How the stack itself connects to its broker."""
        return Kafka(servers, client=self.kafka_client)

    def connect_access(self, url: str) -> Connect:
        """How the stack itself connects to its worker."""
        return Connect(
            url, user=self.connect_user, password=self.connect_password, tls=self.connect_tls
        )

    def save(self, directory: Path) -> None:
        """Write the settings into the stack's directory; ``saved_secured`` reads them."""
        if self.is_on:
            (directory / _FILE).write_text(json.dumps(asdict(self), indent=1) + "\n")


PLAIN = Secured()
"""Nothing is secured."""


def environment_of(directory: Path, part: str) -> dict[str, str]:
    """The variables of a part of the line: ``PART.env`` of its directory, a NAME=VALUE a line."""
    path = directory / f"{part}.env"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def saved_secured(directory: Path) -> Secured:
    """What an earlier ``save`` kept, or nothing at all."""
    path = directory / _FILE
    if not path.exists():
        return Secured()
    found: dict[str, Any] = json.loads(path.read_text())
    for name in ("scram", "mysql", "kafka_java", "connect_java"):
        found[name] = tuple(found[name])
    found["kafka_client"] = tuple((key, value) for key, value in found["kafka_client"])
    found["connect_tls"] = Tls(**found["connect_tls"])
    return Secured(**found)
