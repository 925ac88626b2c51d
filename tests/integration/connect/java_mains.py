"""Small programs in Java that drive classes of ours beside Debezium's, without a connector."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from shardmerge.local.install.artifacts import resolve
from shardmerge.local.install.exact_values import compiler, with_exact_values

ROOT = Path(__file__).resolve().parents[3]


class JavaMain:
    """A program of this folder, compiled against the plugin of the local stack.

    Args:
        name: Of its class, in the package of ours.
        folder: For what is compiled.
        connector: Whose Debezium it is compiled against: mysql or mariadb.
        arguments: Of the program.
    """

    def __init__(
        self, name: str, folder: Path, connector: str = "mysql", arguments: Sequence[str] = ()
    ) -> None:
        cache = ROOT / ".local" / "cache"
        artifacts = resolve(cache)
        plugins = with_exact_values(artifacts.plugin_path, cache, artifacts.java)
        own_jars = sorted(plugins.glob(f"*{connector}/*.jar"))
        jars = [*own_jars, *sorted(artifacts.kafka_jars.glob("*.jar"))]
        path = os.pathsep.join(map(str, jars))
        own = [*compiler(artifacts.java, cache), "--release", "17", "-cp", path, "-d", str(folder)]
        subprocess.run([*own, str(Path(__file__).with_name(f"{name}.java"))], check=True)
        whole = os.pathsep.join((str(folder), path))
        main = ["-cp", whole, f"shardmerge.connect.{name}"]
        self._command = [str(artifacts.java), *main, *arguments]

    def told(self, lines: Sequence[str]) -> Sequence[str]:
        """What it prints for lines that it reads."""
        text = "".join(f"{line}\n" for line in lines)
        ran = subprocess.run(self._command, input=text, capture_output=True, text=True, check=True)
        return ran.stdout.splitlines()
