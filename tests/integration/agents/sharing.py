"""Which partitions each worker has, by what it tells itself."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from shardmerge.schemas.pipeline import topics

from .line import Line, wait_for


def assigned(line: Line, name: str) -> list[str]:
    """The partitions that a worker reads, without changelogs; none while it is not ready."""
    address = f"http://127.0.0.1:{line.web_ports[name]}/healthz"
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            found: list[str] = json.load(answer)["assigned"]
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return []
    return found


def wait_shared(line: Line, names: str) -> None:
    """Wait until every partition has one worker, and every worker has partitions.

    The workers are asked one after the other, so a partition that moves can be told twice for a
    moment.
    """
    read = [topics.schema_changes(line.pipeline, source) for source in line.sources]
    read += [topics.commands(line.pipeline), topics.schema_log(line.pipeline)]
    every = sorted(f"{topic.name}/{n}" for topic in read for n in range(topic.partitions))
    told: dict[str, list[str]] = {}

    def shared() -> bool:
        told.update({name: assigned(line, name) for name in names})
        return all(told.values()) and sorted(p for each in told.values() for p in each) == every

    try:
        wait_for(shared, "partition with one worker each")
    except AssertionError as error:
        raise AssertionError(f"{error}: {told} of {every}") from None
