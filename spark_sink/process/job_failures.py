"""Why a Spark job has failed, and whether another job can do better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError


@dataclass(frozen=True, slots=True)
class JobFailure:
    """The end of a Spark job, for people.

    Attributes:
        final: Every further job would fail as well.
        code: See ``schemas.codes``.
    """

    message: str
    hint: str
    final: bool
    code: str


def job_failure(error: Py4JJavaError, context: Any) -> JobFailure:
    """What the error of a job means.

    A cluster gives up an application when no master answers, or when its executors end again and
    again. Spark then stops the context by itself, and it never starts again in this process.

    Args:
        error: What the job raised.
        context: The Spark context that ran it.
    """
    if context._jsc.sc().isStopped():
        return JobFailure(
            f"Spark's cluster has given up this application: {error.java_exception}",
            "see the log of Spark and its master; a sink that is started again makes a new one",
            final=True,
            code="SM-5803",
        )
    return JobFailure(
        f"Spark's job failed: {error.java_exception}",
        "see the log of Spark",
        final=False,
        code="SM-3113",
    )
