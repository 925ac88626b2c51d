"""Restarts failed connectors and tasks: Connect itself never does. Brings unanswered rereads on.

After a restart of a MySQL server a Debezium task stays FAILED whatever its retry settings are
(measured), and the pipeline stands still without an error anywhere else.

::

    python -m shardmerge.connectors.watchdog --pipeline FILE [--interval 3] [--create]

With ``--create`` it first makes the topics and the connectors. It runs until TERM or INT. A task
that fails again at once is restarted with growing pauses, up to a minute, so that a lasting
cause (an unparsable statement, a purged binlog) does not load the source. Every restart is
logged with its reason.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from shardmerge.schemas.errors import ShardMergeError, StackError
from shardmerge.schemas.pipeline import parse_pipeline

from .connect_rest import ConnectRest
from .deploy import deploy_connectors
from .reread_watch import RereadWatch
from .source_config import connector_name

_LOG = logging.getLogger(__name__)
_MAX_PAUSE_S = 60.0


class Watchdog:
    """Watches connectors of one Connect cluster.

    Args:
        rest: The cluster.
        names: The connectors to watch; one that does not exist (yet) is passed over.
        interval_s: Pause between two looks, and the first pause before a repeated restart.
    """

    def __init__(self, rest: ConnectRest, names: Iterable[str], interval_s: float = 3.0) -> None:
        self._rest = rest
        self._names = tuple(names)
        self._interval_s = interval_s
        self._pause_s: dict[str, float] = {}
        self._not_before: dict[str, float] = {}

    def look(self, now_s: float) -> tuple[str, ...]:
        """Look at every connector once and restart what failed.

        Args:
            now_s: A monotonic clock's time.

        Returns:
            The connectors that were restarted.
        """
        restarted = []
        for name in self._names:
            status = self._rest.status(name)
            if status is None:
                continue
            if not status.is_failed:
                # Calm again once it has run for a whole pause after the restart.
                if status.is_running and now_s >= self._not_before.get(name, 0.0):
                    self._pause_s.pop(name, None)
                continue
            if now_s < self._not_before.get(name, 0.0):
                continue
            self._rest.restart_failed(name)
            _LOG.warning("connector_restarted connector=%s reason=%s", name, status.reason())
            pause_s = self._pause_s.get(name, self._interval_s)
            self._not_before[name] = now_s + pause_s
            self._pause_s[name] = min(2 * pause_s, _MAX_PAUSE_S)
            restarted.append(name)
        return tuple(restarted)

    def run(self, stop: threading.Event) -> None:
        """Look again and again until ``stop`` is set; an unreachable Connect is awaited."""
        _LOG.info("watchdog_started connectors=%s", ",".join(self._names))
        while not stop.is_set():
            try:
                self.look(time.monotonic())
            except StackError as error:
                _LOG.warning("connect_unreachable %s", error)
            stop.wait(self._interval_s)


def main(arguments: list[str] | None = None) -> int:
    """Watch the connectors of a pipeline file until TERM or INT.

    Returns:
        0; 1 when the connectors cannot be made; 2 when the file is wrong.
    """
    parser = argparse.ArgumentParser(description="Restart failed connectors of a pipeline.")
    parser.add_argument("--pipeline", type=Path, required=True)
    parser.add_argument("--interval", type=float, default=3.0, help="seconds between two looks")
    parser.add_argument("--create", action="store_true", help="make topics and connectors first")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        pipeline = parse_pipeline(options.pipeline.read_text(), os.environ)
    except (OSError, ShardMergeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    rest = ConnectRest(pipeline.connect.url, patience_s=10.0)
    names = [connector_name(pipeline, source) for source in pipeline.sources]
    if options.create:
        try:
            deploy_connectors(pipeline, rest)
        except ShardMergeError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    rereads = RereadWatch(pipeline, ConnectRest(pipeline.connect.url, patience_s=10.0))
    beside = threading.Thread(target=rereads.run, args=(stop, options.interval))
    beside.start()
    Watchdog(rest, names, options.interval).run(stop)
    beside.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
