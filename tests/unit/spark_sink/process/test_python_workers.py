"""What Spark's Python workers need not do again for every task."""

from __future__ import annotations

import gc
import importlib
import sys
import zipfile
import zipimport
from collections.abc import Iterable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyspark import TaskContext

from shardmerge.schemas.model.errors import StackError
from shardmerge.spark_sink.process.python_workers import in_worker, once_in_worker


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    """As every other test has it."""
    yield
    gc.unfreeze()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """On the path, with the modules ``zipped_one`` and ``zipped_two``."""
    path = str(tmp_path / "some.zip")
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("zipped_one.py", "VALUE = 1")
        made.writestr("zipped_two.py", "VALUE = 2")
    monkeypatch.syspath_prepend(path)
    return path


def value_of(module: str) -> int:
    value: int = importlib.import_module(module).VALUE
    return value


def test_no_task_reads_an_archive_again_and_all_can_import_from_it(
    archive: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(in_worker(lambda units: map(value_of, units), ["zipped_one"])) == [1]
    read = Mock(wraps=zipimport._read_directory)  # type: ignore[attr-defined]
    monkeypatch.setattr(zipimport, "_read_directory", read)

    importlib.invalidate_caches()  # as PySpark does before each task

    assert not read.called
    assert list(in_worker(lambda units: map(value_of, units), ["zipped_two"])) == [2]
    assert archive not in sys.path_importer_cache


def test_the_collector_looks_at_what_came_with_a_worker_once() -> None:
    counts: list[int] = []

    def look(units: Iterable[int]) -> Iterator[int]:
        counts.append(gc.get_freeze_count())
        yield from units

    for _ in range(2):
        assert list(in_worker(look, [1, 2])) == [1, 2]

    assert counts[0] > 1_000
    # Objects may end; none is added.
    assert counts[1] <= counts[0]


def test_an_error_of_a_task_is_passed_on_and_the_next_task_is_as_quick(archive: str) -> None:
    value_of("zipped_one")

    with pytest.raises(ModuleNotFoundError, match="zipped_three"):
        list(in_worker(lambda units: map(value_of, units), ["zipped_three"]))

    assert archive not in sys.path_importer_cache


@pytest.mark.parametrize("attempt", [None, 0], ids=["in the driver", "first attempt"])
def test_a_task_that_writes_runs(monkeypatch: pytest.MonkeyPatch, attempt: int | None) -> None:
    context = None if attempt is None else Mock(attemptNumber=lambda: attempt)
    monkeypatch.setattr(TaskContext, "get", lambda: context)
    assert list(once_in_worker(iter, [1, 2])) == [1, 2]


def test_a_task_that_writes_does_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    again = Mock(attemptNumber=lambda: 1)
    monkeypatch.setattr(TaskContext, "get", lambda: again)
    written: list[int] = []
    with pytest.raises(StackError, match="would run the task again"):
        list(once_in_worker(lambda units: map(written.append, units), [1]))
    assert not written
