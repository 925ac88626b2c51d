"""Runs a systemd as process 1 of namespaces of its own, with the project installed in /opt.

Usage: ``with Systemd(directory, pipelines={"shop": path}) as systemd: systemd.ctl("start", …)``

It sees this machine, with three exceptions. Changes to /etc, /run and /var/lib vanish with it. /opt
has the project, installed as its unit file says. It knows no unit but that file and the targets
that each unit needs. Processes, mounts and control groups are its own; the network is the
machine's. Only root may make such namespaces.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.levels import link_packages

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "docker" / "shardmerge@.service"
PYTHON = "/opt/python/bin/python3"
_INSTALLED = Path("/opt/shardmerge")
_TARGETS = ("sysinit", "basic", "shutdown", "network-online", "multi-user")
_UP_SECONDS = 120.0

_SCRIPT = """
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p "$PLACE/tmpfs" /run/lock
mount -t tmpfs tmpfs "$PLACE/tmpfs"
for name in etc var-lib; do
    mkdir -p "$PLACE/tmpfs/$name/upper" "$PLACE/tmpfs/$name/work"
done
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$PLACE/tmpfs/etc/upper,workdir=$PLACE/tmpfs/etc/work" /etc
mount -t overlay overlay -o "lowerdir=/var/lib,upperdir=$PLACE/tmpfs/var-lib/upper,workdir=$PLACE/tmpfs/var-lib/work" /var/lib
mount --bind "$PLACE/opt" /opt
mount --bind "$BASE" /opt/python
/opt/shardmerge/bin/python -I -m pip install --quiet --disable-pip-version-check --no-deps "$PLACE"/*.whl
rm -rf /etc/shardmerge
cp -r "$PLACE/etc-shardmerge" /etc/shardmerge
chown -R 0:0 /etc/shardmerge
chmod 600 /etc/shardmerge/*
# As at a boot: without it, credentials that are mounted for a service would stay empty.
mount --make-rshared /
touch "$PLACE/installed"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=unshare SYSTEMD_UNIT_PATH="$PLACE/units" \\
    SYSTEMD_LOG_TARGET=console /lib/systemd/systemd --system --unit=multi-user.target
"""  # noqa: E501


class Systemd:
    """The running systemd.

    Args:
        directory: Folder for its files; may be below a folder that only root can enter.
        pipelines: Name of a pipeline → its file.
        environment: Name of a pipeline → the text of its file of passwords and options.

    Attributes:
        log: What systemd and its services said.
    """

    def __init__(
        self, directory: Path, pipelines: Mapping[str, Path], environment: Mapping[str, str]
    ) -> None:
        self.directory = directory
        self.log = directory / "systemd.log"
        self._pipelines, self._environment = pipelines, environment
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Systemd:
        self._prepare()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["unshare", "--fork", "--pid", "--mount-proc", "--kill-child", "--mount", "--ipc",
                 "--cgroup", "sh", "-c", _SCRIPT],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PLACE": str(self.directory), "BASE": sys.base_prefix},
            )  # fmt: skip
        try:
            self._wait_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            # With process 1, the kernel ends every process of the namespace.
            for pid in self._children():
                os.kill(pid, signal.SIGKILL)
            process.wait(timeout=60)

    def ctl(self, *words: str, check: bool = True) -> str:
        """What ``systemctl`` says.

        Raises:
            AssertionError: It failed; with what it and systemd said.
        """
        done = self.run("systemctl", *words)
        text = done.stdout.decode()
        if check and done.returncode != 0:
            raise AssertionError(f"systemctl {' '.join(words)}: {text}\n{self.text()}")
        return text

    def run(self, *command: str) -> subprocess.CompletedProcess[bytes]:
        """A command among the processes and mounts of systemd."""
        (pid,) = self._children()
        inside = ["nsenter", "--target", str(pid), "--mount", "--pid", "--ipc", "--", *command]
        return subprocess.run(
            inside, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300
        )

    def property(self, unit: str, name: str) -> str:
        """The value of a unit's property."""
        return self.ctl("show", "--value", "--property", name, unit).strip()

    def processes(self) -> list[str]:
        """The command lines of all processes but process 1 and those that list them."""
        listed = self.run("ps", "-eo", "pid=,user=,args=").stdout.decode().splitlines()
        return [line for line in listed if line.split()[0] != "1" and " ps -eo " not in line]

    def text(self) -> str:
        """The end of what was logged."""
        return self.log.read_text(errors="replace")[-8000:]

    def _children(self) -> list[int]:
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def _prepare(self) -> None:
        units = self.directory / "units"
        units.mkdir(parents=True)
        for name in _TARGETS:
            (units / f"{name}.target").write_text("[Unit]\nDefaultDependencies=no\n")
        shutil.copy(UNIT, units)
        # Without journald nobody would keep what the service says.
        (units / f"{UNIT.name}.d").mkdir()
        output = f"[Service]\nStandardOutput=append:{self.log}\nStandardError=inherit\n"
        (units / f"{UNIT.name}.d" / "output.conf").write_text(output, encoding="utf-8")
        settings = self.directory / "etc-shardmerge"
        settings.mkdir()
        for name, pipeline in self._pipelines.items():
            shutil.copy(pipeline, settings / f"{name}.toml")
            # Python's own library may be known by a path that the service cannot enter.
            libraries = "LD_LIBRARY_PATH=/opt/python/lib\n"
            text = self._environment[name] + libraries
            (settings / f"{name}.env").write_text(text, encoding="utf-8")
        installed = self.directory / "opt" / "shardmerge"
        (installed / "bin").mkdir(parents=True)
        (self.directory / "opt" / "python").mkdir()
        (installed / "bin" / "python").symlink_to(PYTHON)
        (installed / "pyvenv.cfg").write_text("home = /opt/python/bin\n", encoding="utf-8")
        link_packages(installed)
        build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(self.directory)]
        subprocess.run([*build, str(ROOT)], check=True, stdout=subprocess.DEVNULL)

    def _wait_up(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _UP_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise AssertionError(f"systemd ended\n{self.text()}")
            if (self.directory / "installed").exists() and self._children():
                said = self.run("systemctl", "is-active", "multi-user.target")
                if said.stdout.strip() == b"active":
                    return
            time.sleep(0.3)
        raise AssertionError(f"systemd is not up after {_UP_SECONDS:.0f} s\n{self.text()}")
