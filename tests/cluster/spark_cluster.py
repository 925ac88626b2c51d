"""A Spark standalone cluster on machines of their own, and the sink's driver on another one."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyspark

from shardmerge.local.servers.processes import HealthCheck, ProcessSpec
from shardmerge.local.servers.stack import LocalStack

from .machines import Machine, Network
from .traffic import until

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
SPARK = Path(pyspark.__file__).parent
WORKERS = ("worker1", "worker2")
MASTER, DRIVER = "master", "driver"
_PORT = 7077
# Workers tell the master four times in this time that they live.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.worker.timeout=10"


class SparkCluster:
    """A master, two workers with a core each, and a machine for the driver.

    The machines of master and workers do not see the checkout: neither its code nor its
    environment. Spark itself is installed on each.

    Args:
        network: Where the machines are.
        stack: Its supervisor runs the processes.
        secrets: The environment of the workers, which their executors get.

    Attributes:
        machines: By name.
    """

    def __init__(self, network: Network, stack: LocalStack, secrets: Mapping[str, str]) -> None:
        self._stack, self._secrets = stack, secrets
        spark = {SPARK: "spark"}
        self.machines: dict[str, Machine] = {
            name: network.machine(name, hidden=[ROOT], bound=spark) for name in (MASTER, *WORKERS)
        } | {DRIVER: network.machine(DRIVER)}

    @property
    def url(self) -> str:
        """Of the master."""
        return f"spark://{self.machines[MASTER].address}:{_PORT}"

    def start(self) -> None:
        """Start the master and the workers, and wait until they know each other."""
        self.start_master()
        for name in WORKERS:
            self.start_worker(name)

    def start_master(self) -> None:
        """Start the master, which knows what an earlier one knew."""
        master = self.machines[MASTER]
        recovery = {"recoveryMode": "FILESYSTEM", "recoveryDirectory": str(master.folder)}
        options = [f"-Dspark.deploy.{name}={value}" for name, value in recovery.items()]
        self._add(
            master,
            "deploy.master.Master", "--host", master.address, "--port", str(_PORT),
            "--webui-port", "8080",
            env={"SPARK_MASTER_OPTS": " ".join(options)},
            says="I have been elected leader",
        )  # fmt: skip

    def start_worker(self, name: str) -> None:
        """Start a worker, and wait until the master knows it."""
        machine = self.machines[name]
        self._add(
            machine,
            "deploy.worker.Worker", "--host", machine.address, "--cores", "1", "--memory", "1g",
            "--work-dir", str(machine.folder / "work"), self.url,
            env=self._secrets,
            says="Successfully registered with master",
        )  # fmt: skip

    def registered(self, name: str) -> int:
        """How often a worker has registered with the master so far."""
        return self._log(name).count("Successfully registered with master")

    def executors(self, name: str, *, of: str = "") -> list[int]:
        """The pids of the executors on a worker's machine; with ``of``, of a driver's address."""
        found = []
        marker = str(self.machines[name].folder)
        driver = f"CoarseGrainedScheduler@{of}:" if of else "CoarseGrainedScheduler@"
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().decode(errors="replace")
                    cwd = os.readlink(entry / "cwd")
                except OSError:
                    continue
                if driver in words and cwd.startswith(marker):
                    found.append(int(entry.name))
        return found

    def kill_executor(self, name: str) -> None:
        """SIGKILL for the executor of a worker."""
        (pid,) = self.executors(name)
        os.kill(pid, signal.SIGKILL)

    def kill_executor_in_a_task(self, name: str) -> None:
        """SIGKILL for the executor of a worker, as soon as it says that a task runs."""
        (pid,) = self.executors(name)
        log = Path(f"/proc/{pid}/cwd/stderr")
        until(lambda: _open_tasks(log.read_text(errors="replace")) > 0, f"task on {name}")
        os.kill(pid, signal.SIGKILL)

    def finished_attempts(self) -> list[int]:
        """Of each task that executors of either worker finished: which attempt it was, from 0."""
        logs = (self.machines[name].folder.glob("work/*/*/stderr") for name in WORKERS)
        text = "".join(log.read_text(errors="replace") for each in logs for log in each)
        return [int(n) for n in re.findall(r" Finished task \d+\.(\d+) in stage ", text)]

    def failed_batches(self) -> int:
        """How many batches failed, as the driver says."""
        return self._log("sink").count("tasks_failed")

    def start_driver(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        """Start a command on the driver's machine as the sink, and wait until it works."""
        machine = self.machines[DRIVER]
        health = self._said("sink", "sink_started", before=self._log("sink"))
        argv = machine.command(*command, env=env)
        self._stack.add(ProcessSpec("sink", argv, health=health, start_timeout_s=120))

    def kill_master(self) -> None:
        """SIGKILL for the master."""
        self._stack.kill(MASTER)

    def kill_driver(self) -> None:
        """SIGKILL for the sink: its Python, its Java, and its workers."""
        self._stack.kill("sink")

    def _add(
        self, machine: Machine, main: str, *words: str, env: Mapping[str, str], says: str
    ) -> None:
        home = machine.folder / "spark"
        program = (str(home / "bin" / "spark-class"), f"org.apache.spark.{main}", *words)
        variables = {
            "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "192m",
            "SPARK_DAEMON_JAVA_OPTS": _JAVA, **env,
        }  # fmt: skip
        health = self._said(machine.name, says, before=self._log(machine.name))
        argv = machine.command(*program, env=variables)
        self._stack.add(ProcessSpec(machine.name, argv, health=health, start_timeout_s=60))

    def _said(self, name: str, text: str, before: str) -> HealthCheck:
        count = before.count(text)

        def check() -> str | None:
            return None if self._log(name).count(text) > count else f"the log has no {text!r}"

        return check

    def _log(self, name: str) -> str:
        path = self._stack.supervisor.log_path(name)
        return path.read_text(errors="replace") if path.exists() else ""


def _open_tasks(log: str) -> int:
    """How many tasks an executor runs, by its log."""
    ended = (" Finished task ", " Exception in task ", " killed task ")
    return log.count(" Running task ") - sum(map(log.count, ended))
