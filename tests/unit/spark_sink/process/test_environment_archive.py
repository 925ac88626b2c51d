"""The archive of the executors' environment: what is in it, and that it runs where it is put."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.spark_sink.process.environment_archive import needed, write_archive

BASE = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
INSTALLED: Mapping[str, Sequence[str]] = {
    "shardmerge": [
        "Base_Package>=1",
        "pyspark>=3.5; extra == 'spark'",
        "with.extra[fast]>=2; extra == 'spark'",
        "click>=8; extra == 'cli'",
        "windows-only; sys_platform == 'win32' and extra == 'spark'",
    ],
    "base-package": ["shardmerge"],
    "with-extra": ["quick; extra == 'fast'", "slow; extra == 'other'"],
    "quick": [],
}


def test_requirements_are_followed_with_their_extras_and_spark_is_left_out() -> None:
    assert needed(INSTALLED.get) == ("base-package", "quick", "with-extra")


def test_a_package_that_is_missing_is_named() -> None:
    without = {name: found for name, found in INSTALLED.items() if name != "quick"}
    with pytest.raises(ConfigError, match="package quick is not installed"):
        needed(without.get)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "environment.tar.gz"
    packages = write_archive(path, BASE)
    assert any(name.startswith("confluent-kafka==") for name in packages), packages
    return path


# The fixture packs the whole environment, which takes minutes where other levels run beside it.
@pytest.mark.timeout(600)
def test_code_that_a_task_runs_is_imported_from_wherever_it_is_unpacked(
    archive: Path, tmp_path: Path
) -> None:
    place = tmp_path / "some where"
    with tarfile.open(archive) as packed:
        packed.extractall(place)
    program = "import shardmerge.spark_sink.kafka.range_reader as m; print(m.__file__)"
    ended = subprocess.run(
        [str(place / "bin" / "python"), "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")},
    )
    assert ended.stdout.startswith(str(place)), ended.stdout


def test_spark_and_compiled_files_are_not_in_it(archive: Path) -> None:
    with tarfile.open(archive) as packed:
        names = packed.getnames()
    assert not [name for name in names if "/pyspark/" in name or "__pycache__" in name]
    assert not [name for name in names if ".." in name.split("/")]
    assert names[:2] == ["bin/python", "bin/python3"]


@pytest.mark.timeout(600)
def test_equal_packages_make_equal_archives(archive: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.tar.gz"
    write_archive(again, BASE)
    assert again.read_bytes() == archive.read_bytes()


def test_a_file_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "kept.tar.gz"
    path.write_text("kept")
    with pytest.raises(ConfigError, match="File exists"):
        write_archive(path, BASE)
    assert path.read_text() == "kept"
