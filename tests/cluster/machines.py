"""Machines on one machine: network namespaces with addresses of their own, on a bridge.

Usage: ``with Network(folder) as network: network.machine("worker1", hidden=[…])``

It needs the rights of a network administrator, in a network namespace of its own. ``in_namespace``
gives them to a command: to root, and to everybody where users may make namespaces.

Nothing has a name outside of these namespaces. So nothing is left when their processes have ended,
however they ended: the kernel takes the namespaces, and with them the bridge and every interface.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = "10.58.0.1"
"""The address of this process's own machine."""
_PREFIX, _FIRST = "10.58.0.", 11
_BRIDGE = "br0"
_INSIDE = "SHARDMERGE_IN_NAMESPACE"
_UP_S = 20.0

# The machine's own disk: what it may not see is covered, what it may see elsewhere is bound there.
_HOLD = """
set -eu
for pair in $BOUND; do mount --bind "${pair%%=*}" "${pair#*=}"; done
for folder in $HIDDEN; do mount -t tmpfs none "$folder"; done
ip link set lo up
touch "$READY"
exec sleep infinity
"""


class NoNamespaces(Exception):
    """No network namespace can be made; says what is missing."""


def in_namespace(*command: str) -> list[str]:
    """The command, in a network namespace of its own in which it is the administrator.

    Raises:
        NoNamespaces: Neither root's rights nor namespaces of users are there.
    """
    said = ""
    for options in (("--net",), ("--user", "--map-root-user", "--net")):
        start = ["unshare", *options, "--"]
        try:
            tried = subprocess.run(
                [*start, "sh", "-c", "ip link set lo up && unshare --net --mount true"],
                capture_output=True,
                text=True,
                check=False,
            )
        except FileNotFoundError as error:
            said = str(error)
            break
        if tried.returncode == 0:
            return [*start, "env", f"{_INSIDE}=1", *command]
        said = tried.stderr.strip()
    raise NoNamespaces(
        "no network namespaces can be made here: run the tests as root with CAP_SYS_ADMIN and"
        " CAP_NET_ADMIN, or let users make namespaces (sysctl user.max_user_namespaces, and"
        " kernel.apparmor_restrict_unprivileged_userns on Ubuntu); it needs unshare of util-linux"
        f" and ip of iproute2: {said}"
    )


def is_inside() -> bool:
    """Whether this process runs in a namespace that ``in_namespace`` has made."""
    return _INSIDE in os.environ


@dataclass(frozen=True, slots=True)
class Machine:
    """A network namespace with an address, and mounts of its own.

    Attributes:
        folder: Its own files.
    """

    name: str
    address: str
    folder: Path
    _holder: subprocess.Popen[bytes]
    _port: str

    def command(self, *command: str, env: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """A command as it runs on the machine, with its address for Spark."""
        there = {"SPARK_LOCAL_IP": self.address, **(env or {})}
        variables = [f"{name}={value}" for name, value in there.items()]
        return (
            *self._enter("--net", "--mount"),
            "env",
            "-C",
            str(self.folder),
            *variables,
            *command,
        )

    def cut_off(self) -> None:
        """Take the cable out: packets vanish, and no connection is closed."""
        _ip("link", "set", self._port, "down")

    def connect(self) -> None:
        """Put the cable in again."""
        _ip("link", "set", self._port, "up")

    def neighbours(self) -> str:
        """What it knows of the addresses of others on its network, as ``ip neighbour`` says it."""
        said = subprocess.run(
            [*self._enter("--net"), "ip", "neighbour"], check=True, capture_output=True, text=True
        )
        return said.stdout

    def _enter(self, *namespaces: str) -> list[str]:
        return ["nsenter", "--target", str(self._holder.pid), *namespaces, "--"]

    def end(self) -> None:
        """End what keeps the machine up. Its processes must have ended before."""
        self._holder.send_signal(signal.SIGKILL)
        self._holder.wait()


class Network:
    """A bridge, this process's address on it, and machines.

    Args:
        folder: For the machines' own folders; not below a folder that a machine does not see.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._machines: list[Machine] = []

    def __enter__(self) -> Network:
        _ip("link", "set", "lo", "up")
        _ip("link", "add", _BRIDGE, "type", "bridge")
        _ip("addr", "add", f"{HERE}/24", "dev", _BRIDGE)
        _ip("link", "set", _BRIDGE, "up")
        return self

    def __exit__(self, *_: object) -> None:
        for machine in self._machines:
            machine.end()
        _ip("link", "del", _BRIDGE)

    def machine(
        self, name: str, *, hidden: Sequence[Path] = (), bound: Mapping[Path, str] | None = None
    ) -> Machine:
        """A new machine.

        Args:
            name: Of its folder.
            hidden: Folders that are empty there.
            bound: Folder → the name under which the machine's folder has it, too.
        """
        number = len(self._machines)
        folder, port = self.folder / name, f"port{number}"
        pairs = {str(there): folder / inside for there, inside in (bound or {}).items()}
        for place in (folder, *pairs.values()):
            place.mkdir(parents=True)
        ready = folder / "ready"
        holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "sh", "-c", _HOLD],
            stdin=subprocess.DEVNULL,
            env={
                **os.environ,
                "BOUND": " ".join(f"{there}={here}" for there, here in pairs.items()),
                "HIDDEN": " ".join(map(str, hidden)),
                "READY": str(ready),
            },
        )
        deadline = time.monotonic() + _UP_S
        while not ready.exists():
            assert holder.poll() is None, f"{name} has no namespaces: see the error output"
            assert time.monotonic() < deadline, f"{name} is not up after {_UP_S:.0f} s"
            time.sleep(0.02)
        machine = Machine(name, f"{_PREFIX}{_FIRST + number}", folder, holder, port)
        self._machines.append(machine)
        end = ("type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
        _ip("link", "add", port, *end)
        _ip("link", "set", port, "master", _BRIDGE, "up")
        for words in (f"addr add {machine.address}/24 dev eth0", "link set eth0 up"):
            inside = ["nsenter", "--target", str(holder.pid), "--net", "--", "ip", *words.split()]
            subprocess.run(inside, check=True)
        return machine


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


if __name__ == "__main__":
    os.execvp("unshare", in_namespace(*sys.argv[1:]))
