"""What ``shardmerge source move --json`` prints, and the lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shardmerge.cli.views.call_shapes import CheckFinding
from shardmerge.schemas.codes.registry import coded


@dataclass(frozen=True, slots=True)
class MovedSource:
    """What ``shardmerge source move`` did, or would do.

    Attributes:
        source: Its name.
        outcome: ``moved``; ``there already``: the file and the connector are as they should be, and
            nothing was done; ``refused``: nothing was changed; ``would move``: with ``--dry-run``.
        server: The new address, as host and port.
        before: The address from which the connector read, or still reads.
        epoch: With which the source is read at the new address.
        lines: The lines of the source's table in the pipeline file that are new.
        connector: Its name in Kafka Connect.
        state: Of the connector at the end, such as ``RUNNING``; "" when it was not touched.
        findings: Faults first. With a fault the move is refused.
        restart: The parts that somebody must start again with the new file, if they run:
            ``validator`` is ``shardmerge validate`` with ``--continuous``. (The watchdog takes
            up a file in which a source was moved by itself.)
    """

    source: str
    outcome: str
    server: str
    before: str
    epoch: int
    lines: tuple[str, ...]
    connector: str
    state: str
    findings: tuple[CheckFinding, ...]
    restart: tuple[str, ...]


def told(moved: MovedSource) -> Iterator[str]:
    """The lines for people."""
    for each in moved.findings:
        text = coded(each.code, f"{each.where}: {each.text}")
        yield f"{'FAULT' if each.fault else 'warn '}  {text}"
    what = f"source {moved.source}: {moved.outcome}"
    yield f"{what}: {moved.before} -> {moved.server}, epoch {moved.epoch}"
    for line in moved.lines:
        yield f"  pipeline file: {line}"
    if moved.state:
        yield f"  {moved.connector}: {moved.state}"
    if moved.restart:
        yield f"  start again with the new file: {', '.join(moved.restart)}"
