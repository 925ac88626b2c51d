"""A Spark job that failed: the next one may succeed, unless the cluster has given up."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from shardmerge.spark_sink.process.job_failures import job_failure


def context(*, stopped: bool) -> Any:
    made = Mock()
    made._jsc.sc.return_value.isStopped.return_value = stopped
    return made


@pytest.mark.parametrize(("stopped", "code"), [(False, "SM-3113"), (True, "SM-5803")])
def test_only_the_end_of_the_application_is_final(stopped: bool, code: str) -> None:
    error: Any = Mock(java_exception="executor 1 was lost")
    found = job_failure(error, context(stopped=stopped))
    assert (found.final, found.code) == (stopped, code)
    assert "executor 1 was lost" in found.message
