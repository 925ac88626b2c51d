"""Where the sink's OpenLineage events go, as the table ``[lineage]`` says it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.secrets import reference


@dataclass(frozen=True, slots=True)
class OpenLineage:
    """Where the sink's OpenLineage events go. Without the table there are none.

    Attributes:
        transport: ``off``; ``http``: a server; ``kafka``: a topic on the pipeline's brokers;
            ``file``: a file on the sink's machine.
        url: With ``http``: address of the server, such as ``http://marquez:5000``.
        endpoint: With ``http``: the path that takes events.
        api_key: With ``http``: where the key is that the server wants, ``env:NAME`` or
            ``file:PATH``; it is sent as a bearer token. "" for none.
        ca: With ``http``: file of the certificates that sign the server's; "" for the usual ones.
        topic: With ``kafka``: the topic's name.
        path: With ``file``: the file. Events are appended, one a line.
        namespace: Namespace of the jobs in the events.
        interval_s: Pause between two events that tell how many rows a target got.
        max_inputs: One event describes this many shards at most. A target with more shards is
            described by several events of the same run.
    """

    transport: str = "off"
    url: str = ""
    endpoint: str = "api/v1/lineage"
    api_key: str = ""
    ca: str = ""
    topic: str = ""
    path: str = ""
    namespace: str = "shardmerge"
    interval_s: int = 60
    max_inputs: int = 50

    def __post_init__(self) -> None:
        needed = LINEAGE_TRANSPORTS.get(self.transport)
        if needed is None:
            raise _lineage(
                f"transport must be one of {', '.join(LINEAGE_TRANSPORTS)}, not {self.transport!r}"
            )
        of_one = {"url": self.url, "topic": self.topic, "path": self.path}
        for name, value in {**of_one, "api_key": self.api_key, "ca": self.ca}.items():
            is_key = name in of_one
            if is_key and name == needed and not value:
                raise _lineage(f"transport {self.transport!r} needs {name}")
            if value and name != needed and (is_key or needed != "url"):
                raise _lineage(f"transport {self.transport!r} has no {name}")
        if self.url and not re.fullmatch(r"https?://[^/?#@\s]+(/[^?#\s]*)?", self.url):
            raise _lineage(
                "url must begin with http:// or https:// and hold no user",
                hint="a key goes into api_key, as env:NAME or file:PATH",
            )
        if self.api_key and reference(self.api_key) is None:
            # The text may be the key, so the message must not have it.
            raise _lineage("api_key must be env:NAME or file:PATH")
        if not self.namespace or min(self.interval_s, self.max_inputs) < 1:
            raise _lineage("namespace must have a name, interval_s and max_inputs be 1 or more")


LINEAGE_TRANSPORTS = {"off": "", "http": "url", "kafka": "topic", "file": "path"}
"""Transport of lineage events → the key that it needs."""


def _lineage(what: str, *, hint: str = "") -> ConfigError:
    return ConfigError(f"[lineage]: {what}", hint=hint, code="SM-7111")
