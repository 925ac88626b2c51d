"""The whole line with its sink on a Spark cluster; servers, cluster and driver are apart."""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from shardmerge.local.keeper import specs
from shardmerge.local.servers.processes import ProcessSpec
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.spark_sink.process.environment_archive import write_archive

from .machines import HERE, Network, is_inside
from .spark_cluster import PYTHON, ROOT, SparkCluster
from .traffic import ROUTES, prepare

TARGET_PASSWORD = "TARGET_PASSWORD"
SMALL_BATCH = 200
"""From so many records on a batch is a job."""


@dataclass(frozen=True, slots=True)
class ClusterLine:
    """The line.

    Attributes:
        pipeline: With passwords that are known here; those of the pipeline file are references.
        archive: The executors' environment.
        env: What the driver's process needs in its environment.
    """

    stack: LocalStack
    cluster: SparkCluster
    pipeline: Pipeline
    archive: Path
    env: dict[str, str]

    @property
    def pipeline_file(self) -> str:
        return str(self.stack.directory / "pipeline.toml")

    def tell(self, before: str, now: str) -> None:
        """Replace a text in the pipeline file, and start the watchdog with the new one."""
        file = Path(self.pipeline_file)
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, now))
        self.stack.stop("watch")
        self.stack.start("watch")


@pytest.fixture(scope="session")
def machines() -> Iterator[Network]:
    """A network, with a folder that no machine hides."""
    assert is_inside(), "these tests need a network namespace of their own: make test-cluster"
    folder = Path(tempfile.mkdtemp(prefix="shardmerge-cluster-"))
    try:
        with Network(folder) as network:
            yield network
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment of the executors."""
    path = tmp_path_factory.mktemp("archive") / "environment.tar.gz"
    write_archive(path, PYTHON)
    return path


@pytest.fixture(scope="session")
def installed(machines: Network, archive: Path) -> str:
    """A Python on every machine that has the executors' packages, as an image has them."""
    folder = machines.folder / "installed"
    with tarfile.open(archive) as packed:
        packed.extractall(folder)
    return str(folder / "bin" / "python")


@pytest.fixture(scope="session")
def line(machines: Network, archive: Path) -> Iterator[ClusterLine]:
    """Servers, agents, watchdog and cluster run; the driver does not."""
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="cluster-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache", host=HERE)
    stack.up()
    try:
        plain = parse_pipeline(stack.pipeline_text("cluster", ROUTES), {})
        prepare(plain)
        secrets = {TARGET_PASSWORD: plain.target.password}
        cluster = SparkCluster(machines, stack, secrets)
        pipeline = _for_the_cluster(plain)
        env = {**secrets, "PYSPARK_PYTHON": "./environment/bin/python", "PYTHONSAFEPATH": "1"}
        (directory / "pipeline.toml").write_text(pipeline_text(pipeline))
        file = str(directory / "pipeline.toml")
        watch = (sys.executable, "-m", "shardmerge.cli.main", "connect", "watch", "--create")
        agents, _ = specs(directory, stack.ports.web)
        safe = {**secrets, "PYTHONSAFEPATH": "1"}
        stack.add(ProcessSpec("watch", (*watch, "--pipeline", file), env=safe))
        stack.add(replace(agents, env={**agents.env, **safe}))
        cluster.start()
        yield ClusterLine(stack, cluster, plain, archive, env)
    finally:
        stack.clean()


def _for_the_cluster(plain: Pipeline) -> Pipeline:
    """The target's password by reference, small batches as jobs, first rows read by executors."""
    first, *others = plain.sources
    return replace(
        plain,
        sources=(replace(first, snapshot="spark"), *others),
        target=replace(plain.target, password=f"env:{TARGET_PASSWORD}"),
        sink=replace(plain.sink, spark_min_records=SMALL_BATCH),
    )
