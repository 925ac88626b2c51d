"""Where Spark keeps the runtime of Iceberg that it fetches."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pyspark

from shardmerge.local.install.iceberg import iceberg_runtime
from shardmerge.spark_sink.targets.iceberg.target import runtime_of
from tests.running import with_tests

from .contract import ROOT

_VERSION = "1.12.0"
_START = f"""
import os
from shardmerge.schemas.pipeline.settings import SparkCatalog
from shardmerge.spark_sink.process.settings import settings_from
from shardmerge.spark_sink.process.spark_session import start_spark
from shardmerge.spark_sink.targets.iceberg.target import spark_conf
settings = settings_from(["--pipeline", "p.toml", "--master", "local[1]"], os.environ)
catalog = SparkCatalog("lake", (("type", "hadoop"), ("warehouse", os.environ["WAREHOUSE"])))
spark = start_spark(settings, spark_conf(catalog, settings, {_VERSION!r}))
spark.sql("CREATE NAMESPACE lake.n")
spark.sql("CREATE TABLE lake.n.t (id INT) USING iceberg")
"""


def _as_in_a_repository(jar: Path, folder: Path) -> None:
    """Ivy's folder with the runtime in the repository that Spark asks before all others."""
    organisation, module, version = runtime_of(pyspark.__version__, _VERSION).split(":")
    place = folder / "local" / organisation / module / version
    for kind in ("jars", "ivys"):
        (place / kind).mkdir(parents=True)
    (place / "jars" / f"{module}.jar").symlink_to(jar)
    (place / "ivys" / "ivy.xml").write_text(
        f'<ivy-module version="2.0"><info organisation="{organisation}" module="{module}"'
        f' revision="{version}"/><publications><artifact/></publications></ivy-module>'
    )


def test_the_runtime_is_fetched_by_a_user_whose_home_cannot_be_written(tmp_path: Path) -> None:
    """Java takes ``user.home`` from the list of users, whatever HOME says (JDK 17, Linux)."""
    home, ivy = tmp_path / "home", tmp_path / "ivy"
    _as_in_a_repository(iceberg_runtime(ROOT / ".local" / "cache"), ivy)
    home.mkdir()
    environment = {
        **with_tests(),
        "HOME": str(home),
        "WAREHOUSE": str(tmp_path / "warehouse"),
        "SHARDMERGE_SPARK_IVY": str(ivy),
        # Below a file nobody makes a folder, not even root.
        "JAVA_TOOL_OPTIONS": f"-XX:TieredStopAtLevel=1 -Duser.home={__file__}",
    }

    started = subprocess.run(
        [sys.executable, "-c", _START], env=environment, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip

    assert started.returncode == 0, started.stderr
    assert len(list((ivy / "jars").glob("*.jar"))) == 1
    assert not list(home.iterdir())
    shutil.rmtree(ivy)
