"""The schema registry of the local stack: Apicurio's, with a file of schemas, and its converter.

They are fetched like the other artifacts, but only for pipelines whose rows are in Avro.
"""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shardmerge.local.install.artifacts import (
    DEFAULT_CACHE,
    find_java,
    read_checksums,
    retrieve,
    verify_checksums,
)
from shardmerge.local.install.files import exclusive_lock

from .processes import ProcessSpec, http_answers

_HERE = Path(__file__).parent.parent / "install"
CCOMPAT = "/apis/ccompat/v7"
"""Path of the interface that is compatible with Confluent's."""


@dataclass(frozen=True, slots=True)
class RegistryArtifacts:
    """Where the registry's programs are.

    Attributes:
        java: The Java binary, 17 or newer.
        app: Folder of the server's jars.
        plugin_path: Folder that holds the converter's folder: a part of Connect's ``plugin.path``.
    """

    java: Path
    app: Path
    plugin_path: Path


def registry_artifacts(
    cache: Path = DEFAULT_CACHE, say: Callable[[str], None] = lambda _: None
) -> RegistryArtifacts:
    """The server and the converter; fetched once per cache.

    Raises:
        StackError: They could not be fetched, or a checksum differs.
    """
    home, java = cache.absolute() / "registry", find_java()
    with exclusive_lock(cache.absolute() / "registry.lock"):
        if not home.is_dir():
            # Renamed when it is complete: a crash before that repeats the work.
            fresh = home.with_name("registry-unverified")
            shutil.rmtree(fresh, ignore_errors=True)
            retrieve(
                _HERE / "ivy-registry.xml",
                fresh,
                cache.absolute(),
                java,
                say,
                settings=_HERE / "ivysettings-registry.xml",
            )
            verify_checksums(fresh, read_checksums((_HERE / "checksums-registry.txt").read_text()))
            with tarfile.open(next((fresh / "registry").glob("*.tar.gz"))) as tar:
                tar.extractall(fresh / "app", filter="data")
            shutil.rmtree(fresh / "registry")
            (fresh / "plugins").mkdir()
            plugin = (fresh / "converter").rename(fresh / "plugins" / "apicurio-converter")
            _write_manifest(plugin)
            fresh.rename(home)
    return RegistryArtifacts(java, home / "app", home / "plugins")


def _write_manifest(plugin: Path) -> None:
    """Write the manifest by which the worker finds the converter; its own jars have none."""
    with zipfile.ZipFile(plugin / "manifest.jar", "w") as jar:
        jar.writestr(
            "META-INF/services/org.apache.kafka.connect.storage.Converter",
            "io.apicurio.registry.utils.converter.AvroConverter\n",
        )


def registry_spec(artifacts: RegistryArtifacts, directory: Path, port: int) -> ProcessSpec:
    """The server's process; its schemas are kept in the directory, over restarts."""
    directory.mkdir(parents=True, exist_ok=True)
    [jar] = artifacts.app.glob("*-runner.jar")
    options = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "apicurio.storage.kind": "sql",
        "apicurio.storage.sql.kind": "h2",
        "apicurio.datasource.url": f"jdbc:h2:file:{directory / 'schemas'}",
        "quarkus.log.level": "WARN",
    }
    return ProcessSpec(
        name="registry",
        argv=(
            str(artifacts.java),
            "-Xmx384m",
            "-XX:+UseSerialGC",
            "-XX:-UsePerfData",
            "-XX:TieredStopAtLevel=1",
            *(f"-D{key}={value}" for key, value in options.items()),
            "-jar",
            str(jar),
        ),
        ports=(port,),
        cwd=directory,
        health=http_answers(f"http://127.0.0.1:{port}{CCOMPAT}/subjects"),
        start_timeout_s=180,
    )
