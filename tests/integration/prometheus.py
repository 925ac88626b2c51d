"""A real Prometheus: Debian's package, unpacked beside the other servers' programs."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from shardmerge.local.install.debs import Wanted, loader_command, unpack_package
from shardmerge.local.install.files import exclusive_lock

PATIENCE_S = 60.0
ALERTS = Path(__file__).resolve().parents[2] / "docker" / "prometheus" / "alerts.yml"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def hurried() -> str:
    """The rules with bounds of seconds instead of minutes and days; retention's stays."""
    text = re.sub(r"for: \d+m", "for: 1s", ALERTS.read_text())
    text = re.sub(r"(time\(\) - \S+|_seconds(?:\{[^}]*\})?) > \d+", r"\1 > 2", text)
    return text.replace("[15m]", "[15s]")


def program(name: str, cache: Path) -> tuple[str, ...]:
    """How to start ``prometheus`` or ``promtool``; fetches the package once."""
    home = cache / "servers" / "prometheus"
    with exclusive_lock(cache / "prometheus.lock"):
        if not (home / "complete").exists():
            unpack_package(Wanted(("prometheus",), "bookworm"), home, print)
            (home / "complete").touch()
    return loader_command(home / "root", f"usr/bin/{name}")


class Prometheus:
    """One that runs."""

    def __init__(self, port: int, log: Path) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._log = log

    def _get(self, path: str, **query: str) -> Any:
        with urlopen(f"{self._url}{path}?{urlencode(query)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query."""
        found: list[dict[str, Any]] = self._get("/api/v1/query", query=expression)["result"]
        return found

    def firing(self) -> set[str]:
        """The alerts that fire now."""
        alerts = self._get("/api/v1/alerts")["alerts"]
        return {a["labels"]["alertname"] for a in alerts if a["state"] == "firing"}

    def _told(self) -> str:
        """What a failed wait is explained with."""
        try:
            values = self.query('{__name__=~"shardmerge_sink_(w|open|ret).+|ALERTS|up"} != 0')
        except OSError:
            return self._log.read_text()[-2000:]
        return "\n".join(f"{each['metric']}: {each['value'][1]}" for each in values)

    def until(self, what: str, holds: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + patience_s
        while True:
            try:
                if holds():
                    return
            except OSError:
                pass  # it starts
            assert time.monotonic() < deadline, f"{what}: {self._told()}"
            time.sleep(0.2)


@contextmanager
def running(
    folder: Path, port: int, jobs: Mapping[str, int], rules: str, cache: Path
) -> Iterator[Prometheus]:
    """Prometheus with these rules, which reads each job's port every second."""
    (folder / "alerts.yml").write_text(rules)
    scraped = [
        {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{number}"]}]}
        for job, number in jobs.items()
    ]
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["alerts.yml"],
        "scrape_configs": scraped,
    }
    (folder / "prometheus.yml").write_text(json.dumps(configuration))
    log = folder / "prometheus.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                *program("prometheus", cache), f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield Prometheus(port, log)
    finally:
        process.terminate()
        process.wait(30)
