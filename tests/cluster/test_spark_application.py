"""What the chart's SparkApplication starts in its driver's pod, on the standalone cluster."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from .conftest import ClusterLine
from .from_the_page import SMALL
from .spark_cluster import DRIVER, ROOT, SPARK, WORKERS
from .traffic import Traffic, until, until_equal

APPLICATION = json.loads((Path(__file__).parent / "spark_application.json").read_text())
"""``tests/chart`` holds it against what the chart renders."""
PIPELINE, MASTER = "/etc/shardmerge/pipeline.toml", "k8s://https://kubernetes.default.svc:443"


def program_of_the_image() -> bytes:
    """The file that the image's recipe writes for ``mainApplicationFile``."""
    place = APPLICATION["mainApplicationFile"].removeprefix("local://")
    recipe = (ROOT / "docker" / "spark.Dockerfile").read_text()
    (text,) = re.findall(rf"printf '([^']+)' > {re.escape(place)}$", recipe, re.MULTILINE)
    return subprocess.run(["printf", text], check=True, capture_output=True).stdout


def command_of_the_pod(line: ClusterLine, folder: Path) -> list[str]:
    """The driver's command, with files and addresses of this cluster.

    Spark adds ``driver --properties-file … --class … FILE ARGUMENTS`` to the pod, and the entry
    point of Spark's image makes a call of ``spark-submit`` of it.

    Source: DriverCommandFeatureStep.scala and entrypoint.sh of Spark's folder for Kubernetes.
    """
    program, settings = folder / "sink.py", folder / "spark.properties"
    program.write_bytes(program_of_the_image())
    conf = APPLICATION["sparkConf"] | SMALL | {"spark.master": line.cluster.url}
    settings.write_text("".join(f"{name}={value}\n" for name, value in conf.items()))
    ours = {PIPELINE: line.pipeline_file, MASTER: line.cluster.url}
    assert ours.keys() <= set(APPLICATION["arguments"])
    arguments = [ours.get(word, word) for word in APPLICATION["arguments"]]
    submit = str(SPARK / "bin" / "spark-submit")
    address = line.cluster.machines[DRIVER].address
    return [
        submit, "--conf", f"spark.driver.bindAddress={address}", "--deploy-mode", "client",
        "--properties-file", str(settings), "--class", "org.apache.spark.deploy.PythonRunner",
        f"local://{program}", *arguments,
    ]  # fmt: skip


@pytest.mark.timeout(600)
def test_rows_and_ddl_pass_with_what_the_charts_spark_application_starts(
    line: ClusterLine, installed: str, tmp_path: Path
) -> None:
    cluster = line.cluster
    if line.stack.status().get("sink"):
        cluster.kill_driver()
    pythons = {"PYSPARK_PYTHON": installed, "PYSPARK_DRIVER_PYTHON": sys.executable}
    cluster.start_driver(command_of_the_pod(line, tmp_path), {**line.env, **pythons})
    try:
        with Traffic(line.pipeline) as traffic:
            traffic.passes()
            until(lambda: all(cluster.executors(w) for w in WORKERS), "executors")
            traffic.alter()
            traffic.passes()
        until_equal(line.pipeline)
        address = cluster.machines[DRIVER].address
        with urlopen(f"http://{address}:9401/metrics", timeout=10) as answer:
            assert b"\nshardmerge_sink_active 1" in answer.read()
    finally:
        cluster.kill_driver()
