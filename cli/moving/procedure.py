"""Moves one source's connector to another server.

Theory of operation. The command may be interrupted anywhere, and is then called again:

1. Stop the connector, so that its offset stays as it is. (A connector that failed, because its
   server is gone, is stopped just so.)
2. Compare the offset's GTIDs with the new server's (``move_rules``). With a fault the connector
   runs on as before, and nothing was changed. An offset within a transaction is written anew, as
   one behind it, if the whole transaction is delivered (``resumption``): true at both servers.
3. Write the new address and the next epoch into the pipeline file. A second call finds the address
   there, and leaves the epoch as it is. (``next_epoch``: it depends on what the connector's
   configuration has, which is still the old one.)
4. Put the connector's configuration, let it run, and wait until it does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from shardmerge.cli.checks.findings import Finding
from shardmerge.cli.views.call_shapes import CheckFinding
from shardmerge.connectors.binlog.binlog_events import RowsEvent
from shardmerge.connectors.binlog.gtids import Gtids
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name, readings_among
from shardmerge.connectors.deploy import configuration, deploy_connectors
from shardmerge.connectors.repair.marked_config import MARK
from shardmerge.schemas.model.errors import ConfigError, StackError
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline, Source

from .move_rules import NewServer, ServerBefore, move_findings
from .move_shapes import MovedSource
from .pipeline_text import replace_text
from .resumption import NewBinlog, resumption
from .source_table import (
    changed_keys,
    lines_of,
    next_epoch,
    parts_to_restart,
    server_before,
    with_source,
)

_LOOK_S = 0.5
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Servers:
    """How servers and topics are asked.

    Attributes:
        ask: What the server at a source's address says.
        before: What the server says from which the source is moved; None when it does not answer.
        delivered: The transactions of the last records that the source's connector wrote.
        binlog: What the binlog of the server at a source's address has behind the transactions that
            are read, of which one is begun.
        rows_of: How many rows an event has in the binlog of the server at a source's address; None
            if they cannot be counted.
    """

    ask: Callable[[Source], NewServer]
    before: Callable[[Source], ServerBefore | None]
    delivered: Callable[[Source], frozenset[str]]
    binlog: Callable[[Source, Gtids, str], NewBinlog]
    rows_of: Callable[[Source, RowsEvent], int | None]


@dataclass(frozen=True, slots=True)
class Wishes:
    """How a source is to be moved.

    Attributes:
        abandon: Whether transactions that only the server before has may be lost.
        wait_s: How long the new server may take to get what it lacks.
        timeout_s: How long the connector may take to run.
        is_dry: Whether nothing is to be changed.
    """

    abandon: bool = False
    wait_s: float = 0.0
    timeout_s: float = 120.0
    is_dry: bool = False


class Move:
    """The move of one source.

    Args:
        path: Of the pipeline file.
        pipeline: What the file says.
        source: One of its sources.
        address: ``source`` with its new host, port, user and password.
        rest: The Connect cluster.
        servers: How servers are asked.
        wishes: See ``Wishes``.

    Raises:
        StackError: The connector does not exist, or Connect does not answer.
    """

    def __init__(
        self,
        path: Path,
        pipeline: Pipeline,
        source: Source,
        address: Source,
        *,
        rest: ConnectRest,
        servers: Servers,
        wishes: Wishes,
    ) -> None:
        self._path, self._pipeline, self._source = path, pipeline, source
        self._rest, self._servers, self._wishes = rest, servers, wishes
        self._name = connector_name(pipeline, source)
        config = rest.config(self._name)
        if config is None:
            raise StackError(
                f"there is no connector {self._name} at {rest.url}",
                hint="nothing has to be moved: write the new host into the pipeline file, then "
                "`shardmerge connect apply`",
                code="SM-4307",
            )
        self._config: Mapping[str, str] = config
        self._moved = replace(address, epoch=next_epoch(source, address, config))
        self._before = server_before(source, config)
        self._offset: Mapping[str, Any] | None = None

    def run(self) -> MovedSource:
        """Do it; see the module's text.

        Raises:
            ConfigError: The pipeline file cannot be changed.
            StackError: Connect, Kafka or the new server does not answer, or the connector does not
                run at the new server.
        """
        rest, name = self._rest, self._name
        if busy := self._busy():
            return self._told("refused", [busy])
        self._check_file()
        status = rest.status(name)
        wanted = configuration(self._only(), self._moved, rest)
        if (
            {**wanted, "name": name} == self._config
            and status is not None
            and status.is_running
            and not self._changed
        ):
            return self._told("there already", [], "RUNNING")
        self._servers.ask(self._moved)  # raises before the connector is touched
        if self._wishes.is_dry:
            findings = self._findings()
            refused = any(each.fault for each in findings)
            return self._told("refused" if refused else "would move", findings)
        was_stopped = status is not None and status.state in ("STOPPED", "PAUSED")
        try:
            rest.stop(name)
            findings = self._awaited_findings()
            is_refused = any(each.fault for each in findings)
            if not is_refused:
                rest.refuse_unfit({**wanted, "name": name})
                if self._offset is not None:
                    rest.set_offset(name, self._source.name, self._offset)
                self._write_file()
        except BaseException:  # an interrupt by the keyboard, too
            self._go_on(was_stopped=was_stopped)
            raise
        if is_refused:
            self._go_on(was_stopped=was_stopped)
            return self._told_refused(findings, was_stopped=was_stopped)
        self._start(wanted)
        return self._told("moved", findings, "RUNNING")

    @property
    def _changed(self) -> dict[str, str | int]:
        return changed_keys(self._source, self._moved)

    def _only(self) -> Pipeline:
        return replace(self._pipeline, sources=(self._moved,))

    def _busy(self) -> Finding | None:
        """Why the connector may not be stopped now."""
        where = f"source {self._source.name}"
        if MARK in self._config:
            text = "the watchdog repairs its connector: wait until that has ended"
        elif readings_among(self._rest.connectors(), self._name):
            text = "its tables without a primary key are being read as a whole: wait for the end"
        else:
            return None
        return Finding(where, text, code="SM-6607")

    def _awaited_findings(self) -> list[Finding]:
        """What speaks against the move, when the new server has had time to catch up."""
        deadline = time.monotonic() + self._wishes.wait_s
        while True:
            findings = self._findings()
            lag = any(each.fault and each.code in ("SM-6601", "SM-6603") for each in findings)
            if not lag or time.monotonic() > deadline:
                return findings
            time.sleep(_LOOK_S)

    def _findings(self) -> list[Finding]:
        values = self._rest.offset(self._name)
        offset = SourceOffset(values or {})
        where = f"source {self._source.name}"
        if values is not None and offset.is_snapshot:
            text = "its first snapshot has not ended, and cannot be continued at another server"
            return [Finding(where, text, code="SM-6607")]
        if values is not None and offset.read_gtids is None:
            text = "its connector reads by binlog position: another server has other positions"
            return [Finding(where, text, code="SM-6605")]
        # In this order: what the old server writes between the two is missing at the new one.
        is_other = (self._before.host, self._before.port) != (self._moved.host, self._moved.port)
        before = self._servers.before(self._before) if is_other else None
        new = self._servers.ask(self._moved)
        read, begun = offset.read_gtids, frozenset[str]()
        if read is not None and offset.is_within_transaction:
            begun = self._servers.delivered(self._source)
        found = move_findings(
            self._moved, read, new, before, begun=begun, abandon=self._wishes.abandon
        )
        is_refused = any(each.fault for each in found)
        if read is not None and offset.is_within_transaction and not is_refused:
            found += self._resumption_findings(offset, read, begun)
        return found

    def _resumption_findings(
        self, offset: SourceOffset, read: Gtids, delivered: frozenset[str]
    ) -> list[Finding]:
        """Where the connector goes on, if that is possible; see ``resumption``."""
        servers, at = self._servers, self._moved
        begun = max((gtid for gtid in delivered if not read.has(gtid)), default="")
        binlog = servers.binlog(at, read, begun) if begun else NewBinlog()
        found = resumption(offset, begun, binlog, partial(servers.rows_of, at))
        self._offset = found.values
        if not found.obstacle:
            return []
        return [Finding(f"source {self._source.name}", found.obstacle, code="SM-6614")]

    def _go_on(self, *, was_stopped: bool) -> None:
        """Let the connector run on as before; one that was found stopped stays so.

        Raises:
            StackError: Connect does not answer. The hint says how to let it run.
        """
        if was_stopped:
            return
        try:
            self._rest.resume(self._name)
        except StackError as error:
            raise StackError(
                error.message,
                hint="the connector may be stopped now, and nothing was changed: repeat the "
                f"command, or PUT {self._rest.url}/connectors/{self._name}/resume lets it run",
                code=error.code,
            ) from error

    def _start(self, config: Mapping[str, str]) -> None:
        rest, name = self._rest, self._name
        # ``run`` has asked whether it is fit. Connect asks its connector once more by itself.
        rest.set_config(name, config)
        # Connect stops a stopped connector once more when its configuration is put, and reports a
        # failure if it is resumed meanwhile.
        rest.stop(name)
        rest.resume(name)
        for last in range(_TRIES):
            try:
                deploy_connectors(self._only(), rest, self._wishes.timeout_s)
            except StackError as error:
                if error.code != "SM-4301" or last == _TRIES - 1:
                    raise
                rest.restart_failed(name)
            else:
                return

    def _edited(self) -> str:
        """The file's new text.

        Raises:
            ConfigError: It cannot be read, or would say something else than is wanted.
        """
        text = self._path.read_text(encoding="utf-8")
        edited = with_source(text, self._source.name, self._changed)
        parsed = parse_pipeline(edited, os.environ)
        others = tuple(s for s in self._pipeline.sources if s.name != self._source.name)
        found = tuple(s for s in parsed.sources if s.name != self._source.name)
        if parsed.source(self._source.name) != self._moved or found != others:
            raise self._unedited("its table of the source is not written in the usual form")
        return edited

    def _check_file(self) -> None:
        """Make sure that the file can be changed, before anything is."""
        if not self._changed or self._wishes.is_dry:
            return
        self._edited()
        real = self._path.resolve()
        if not os.access(real, os.W_OK) or not os.access(real.parent, os.W_OK):
            raise self._unedited("it may not be written")

    def _unedited(self, reason: str) -> ConfigError:
        lines = "; ".join(lines_of(self._changed))
        return ConfigError(
            f"pipeline file {self._path}: {reason}",
            hint=f"write into the table of source {self._source.name}: {lines}; then repeat the "
            "command",
            code="SM-6608",
        )

    def _write_file(self) -> None:
        """Replace the file by its new text, whole or not at all."""
        if not self._changed:
            return
        replace_text(self._path, self._edited())

    def _told_refused(self, findings: list[Finding], *, was_stopped: bool) -> MovedSource:
        if not was_stopped:
            return self._told("refused", findings)
        text = (
            f"its connector was stopped already, and stays so. If that was an earlier call, which "
            f"was killed: PUT {self._rest.url}/connectors/{self._name}/resume lets it run"
        )
        stopped = Finding(f"source {self._source.name}", text, fault=False, code="SM-6612")
        return self._told("refused", [*findings, stopped], "STOPPED")

    def _told(self, outcome: str, findings: list[Finding], state: str = "") -> MovedSource:
        shapes = [CheckFinding(f.where, f.text, f.fault, f.code) for f in findings]
        return MovedSource(
            source=self._source.name,
            outcome=outcome,
            server=f"{self._moved.host}:{self._moved.port}",
            before=f"{self._before.host}:{self._before.port}",
            epoch=self._moved.epoch,
            lines=lines_of(self._changed),
            connector=self._name,
            state=state,
            findings=tuple(sorted(shapes, key=lambda each: not each.fault)),
            restart=parts_to_restart(self._pipeline, self._source) if outcome == "moved" else (),
        )
