"""The watchdog as a process of a stack."""

from __future__ import annotations

import sys
from pathlib import Path

from shardmerge.local.servers.processes import ProcessSpec
from shardmerge.local.servers.stack import LocalStack


def start_watchdog(stack: LocalStack, file: Path, *options: str) -> Path:
    """Start the watchdog of a pipeline file, named ``watchdog``; returns its log."""
    log = stack.supervisor.log_path("watchdog")
    command = (sys.executable, "-P", "-m", "shardmerge.connectors.watchdog")
    stack.add(
        ProcessSpec(
            "watchdog",
            (*command, "--pipeline", str(file), *options),
            health=lambda: None if "watchdog_started" in log.read_text() else "not started",
            start_timeout_s=120,
        )
    )
    return log
