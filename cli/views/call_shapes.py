"""The values that ``--json`` prints of commands that do something. Pure; see ``shapes``."""

from __future__ import annotations

from dataclasses import dataclass

from .shapes import DecisionLine


@dataclass(frozen=True, slots=True)
class GivenCommand:
    """What ``shardmerge command`` prints.

    Attributes:
        change: Its place in the log; its answer has the same ``change``.
        answer: None when none came in time: it comes when the agents run.
    """

    change: str
    answer: DecisionLine | None


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """Something about the pipeline file, a server, Kafka Connect or topics.

    Attributes:
        where: What it is about.
        text: What was found, and what it must be.
        code: Such as ``SM-6101``.
        fault: Whether the pipeline must not run with it; else it should be known.
    """

    where: str
    text: str
    fault: bool
    code: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """What ``shardmerge check`` prints.

    Attributes:
        pipeline: Its name; "" when the file cannot be read.
        findings: Faults first.
    """

    pipeline: str
    findings: tuple[CheckFinding, ...]
