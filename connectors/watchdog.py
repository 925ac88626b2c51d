"""Restarts and repairs failed connectors, which Connect itself never does.

It also sees to unanswered requests for snapshots (``reread_watch``), and has tables without a
primary key read as a whole where a decision asks for that (``whole``).

After a restart of a MySQL server a Debezium task stays FAILED whatever its retry settings are
(measured), and the pipeline stands still without an error anywhere else. In two cases a restart
alone does not help: at a statement that Debezium cannot read, and right behind a DDL. How these are
repaired: ``repair.source_repair``.

::

    python -m shardmerge.connectors.watchdog --pipeline FILE [--interval 3] [--create]
        [--metrics-host 127.0.0.1] [--metrics-port 9402]

With ``--create`` it also makes the topics and the connectors, beside its own loop and each source
on its own (``making_watch``). It runs until TERM or INT. A task that fails again at once is
restarted with growing pauses, up to a minute. One that has failed ten times with the same reason at
the same place of its binlog is given up: that is logged once, and the metrics tell it until it runs
again. Restarts go on nevertheless, with pauses that grow up to ten minutes: whether Connect reaches
the source again shows only when a task starts. Every restart is logged with its reason.

When the pipeline file gives a source a higher epoch (``shardmerge source move``), it begins anew
with the file as it is then.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from shardmerge.connectors.access.kafka import check_admitted
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.connect.restarts import Restarts
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.formats.connector_status import ConnectorStatus
from shardmerge.connectors.log_lines import add_log_option, form_of, set_up
from shardmerge.connectors.metrics.connector_states import ConnectorStates
from shardmerge.connectors.metrics.endpoint import serve
from shardmerge.connectors.repair.source_repair import SourceRepair, repairs_of
from shardmerge.connectors.repair.statement_repair import Attended
from shardmerge.connectors.whole.reading_watch import ReadingWatch
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.pipeline.file import parse_pipeline

from .making_watch import MakingWatch
from .moved_sources import MovedSources
from .reread_watch import RereadWatch
from .watch_loop import look_at_each, tell

log = logger(__name__)
_TAKE_IN_PAUSE_S = 15.0
_WITHOUT_A_PLACE = "Source offset 'file' parameter is missing"
"""Debezium announces a first snapshot before it has noted the binlog's position, and the offset of
that record, without a position, is stored. If the task is interrupted right there, it fails at
every start (measured, 3.6.1). No row of the snapshot has come by then, so it is taken again."""
_WATCHED = "connectors"
"""What the log calls them."""
_CONNECT_UNANSWERED = "SM-4304"
_AWAY_S = 30.0
"""Pause before a source that did not answer is asked for its ``gtid_mode`` again."""


class Watchdog:
    """Watches connectors of one Connect cluster.

    Args:
        rest: The cluster.
        names: The connectors to watch; a connector that does not exist (yet) is ignored.
        interval_s: Pause between two looks, and the first pause before a repeated restart.
        repairs: Connector's name → its repair. A failed connector without one is only restarted.

    Attributes:
        states: What it saw and did, as metrics.
    """

    def __init__(
        self,
        rest: ConnectRest,
        names: Iterable[str],
        interval_s: float = 3.0,
        repairs: Mapping[str, SourceRepair] | None = None,
    ) -> None:
        self._rest = rest
        self._names = tuple(names)
        self._interval_s = interval_s
        self.states = ConnectorStates(self._names)
        self._repairs = repairs or {}
        self._restarts = {name: Restarts(interval_s) for name in self._names}
        self._unseen = set(self._names)
        self._take_in_at = dict.fromkeys(self._names, float("-inf"))
        self._asked_from = dict.fromkeys(self._names, float("-inf"))

    def look(self, now_s: float) -> tuple[str, ...]:
        """Look at every connector once, and restart or repair those that failed.

        If something goes wrong with one, the others are looked at nevertheless.

        Args:
            now_s: A monotonic clock's time.

        Returns:
            The connectors that were restarted.

        Raises:
            StackError: Connect, Kafka or a source did not answer.
            ContractError: A connector's topics hold what it did not write.
            ConfigError: A password or a file is not where the pipeline file says.
        """

        def is_restarted(name: str) -> bool:
            if not self._look_at(name, now_s):
                return False
            self.states.restarted(name)
            return True

        return tuple(look_at_each(self._names, is_restarted, _WATCHED))

    def _look_at(self, name: str, now_s: float) -> bool:
        restarts, repair = self._restarts[name], self._repairs.get(name)
        if repair is not None and now_s >= self._asked_from[name]:
            # Asked before Connect is: which mode a source had meanwhile cannot be found out later.
            self._asked_from[name] = now_s + _AWAY_S
            repair.see_gtid_mode()
            self._asked_from[name] = now_s
        status = self._rest.status(name)
        states = ("ABSENT",) if status is None else (status.state, *(t.state for t in status.tasks))
        self.states.seen(name, states[0], states[1:], time.time())
        if status is None:
            return False
        if not status.is_failed:
            if status.is_running:
                restarts.runs(now_s)
            return repair is not None and self._look_at_unfailed(name, status, repair, now_s)
        self._unseen.discard(name)
        self.states.given_up(name, is_so=restarts.is_given_up)
        if not restarts.is_due(now_s):
            return False
        reason = status.reason()
        if repair is not None and _WITHOUT_A_PLACE not in reason:
            # Raises if the source is away: no restart helps before it is back.
            repair.source_end()
            if not restarts.helps(reason, self._rest.offset(name)) and restarts.gives_up():
                log.error(
                    "connector_given_up",
                    connector=name,
                    restarts=restarts.fruitless,
                    reason=reason,
                )
            self.states.given_up(name, is_so=restarts.is_given_up)
        restarts.begun(now_s)
        try:
            outcome = self._attend(name, status, repair)
        except ShardMergeError as error:
            if error.code == _CONNECT_UNANSWERED:
                restarts.unanswered(now_s)
            else:
                restarts.not_restarted()
            raise
        if outcome is Attended.HELD:
            restarts.not_restarted()
            return False
        log.warning("connector_restarted", connector=name, remedy=outcome, reason=reason)
        return True

    def _attend(self, name: str, status: ConnectorStatus, repair: SourceRepair | None) -> Attended:
        """Restart or repair a connector that failed."""
        if repair is None:
            self._rest.restart_failed(name)
            return Attended.RESTARTED
        if _WITHOUT_A_PLACE in status.reason():
            repair.begin_anew()
            return Attended.BEGUN_ANEW
        return repair.attend(status)

    def _look_at_unfailed(
        self, name: str, status: ConnectorStatus, repair: SourceRepair, now_s: float
    ) -> bool:
        """Look at a connector that has not failed; True if it was restarted for its GTIDs."""
        if status.state == "STOPPED" or name in self._unseen:
            self._unseen.discard(name)
            if repair.finish(status):
                log.warning("repair_resumed", connector=name, state=status.state)
        elif status.is_running:
            if repair.look_at_gtids():
                return True
            if now_s >= self._take_in_at[name]:
                self._take_in_at[name] = now_s + _TAKE_IN_PAUSE_S
                repair.take_in()
        return False

    def run(self, stop: threading.Event, moved: Callable[[], tuple[str, ...]] = tuple) -> None:
        """Look again and again until ``stop`` is set, even if something does not answer.

        A defect of our own is logged with its traceback, and the watch goes on: without it no
        connector would be started again.

        Args:
            stop: See above.
            moved: Which sources have another address now: then ``stop`` is set.
        """
        log.info("watchdog_started", connectors=self._names)
        while not stop.is_set():
            try:
                self.look(time.monotonic())
            except Exception as error:
                tell(error, _WATCHED)
            if names := moved():
                log.info("sources_moved", sources=names)
                stop.set()
            stop.wait(self._interval_s)


def main(arguments: list[str] | None = None) -> int:
    """Watch the connectors of a pipeline file until TERM or INT.

    Returns:
        0; 1 when Kafka does not admit us, or a password is not where the file says; 2 when the file
        is wrong.
    """
    options = _options(arguments)
    try:
        set_up("watchdog", form=form_of(options.log_format, os.environ))
        pipeline = parse_pipeline(options.pipeline.read_text(), os.environ)
        moved = MovedSources(options.pipeline, pipeline)
    except (OSError, ShardMergeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    told, code = threading.Event(), 0
    while not (told.is_set() or code):
        stop = threading.Event()
        _stop_when_told(told, stop)
        code = _watch(options, moved, stop)
    return code


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Restart failed connectors of a pipeline.")
    parser.add_argument("--pipeline", type=Path, required=True)
    parser.add_argument("--interval", type=float, default=3.0, help="seconds between two looks")
    parser.add_argument("--create", action="store_true", help="make topics and connectors, too")
    add_log_option(parser)
    parser.add_argument("--metrics-host", default="127.0.0.1", help="address of the metrics")
    parser.add_argument("--metrics-port", type=int, default=0, help="their port; 0 for none")
    return parser.parse_args(arguments)


def _stop_when_told(told: threading.Event, stop: threading.Event) -> None:
    """Set both at TERM or INT; ``stop`` at once if ``told`` is set already."""

    def end(*_: object) -> None:
        told.set()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    if told.is_set():
        stop.set()


def _watch(options: argparse.Namespace, moved: MovedSources, stop: threading.Event) -> int:
    """Watch until ``stop`` is set, or until a source was moved; returns an exit code."""
    pipeline = moved.pipeline
    names = [connector_name(pipeline, source) for source in pipeline.sources]
    with ExitStack() as used:
        try:
            if options.create:
                check_admitted(pipeline.kafka)
            rest, *others = (
                used.enter_context(closing(ConnectRest.of(pipeline.connect, patience_s=10.0)))
                for _ in range(4)
            )
            repairs = repairs_of(pipeline, rest)
            for repair in repairs.values():
                used.callback(repair.close)
            rereads = RereadWatch(pipeline, others[0], repairs)
            readings = ReadingWatch(pipeline, others[1], repairs)
            runs = [partial(watch.run, stop, options.interval) for watch in (rereads, readings)]
            if options.create:
                runs.append(partial(MakingWatch(pipeline, others[2], repairs).run, stop))
        except ShardMergeError as error:
            log.error("watchdog_failed", error=error)  # noqa: TRY400 - expected: no traceback
            return 1
        watchdog = Watchdog(rest, names, options.interval, repairs)
        if options.metrics_port:
            samples = watchdog.states.samples
            try:
                used.callback(serve(samples, options.metrics_host, options.metrics_port))
            except ShardMergeError as error:
                print(f"error: {error}", file=sys.stderr)
                return 2
        for run in runs:
            thread = threading.Thread(target=run)
            thread.start()
            used.callback(thread.join)
        # The first to be called: also after an error the threads end.
        used.callback(stop.set)
        watchdog.run(stop, moved.look)
    return 0


if __name__ == "__main__":
    sys.exit(main())
