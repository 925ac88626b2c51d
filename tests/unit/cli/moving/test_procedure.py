"""A move, step by step, with a Connect cluster and servers in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from shardmerge.cli.bundles import without_passwords
from shardmerge.cli.moving import procedure
from shardmerge.cli.moving.move_rules import NewServer, ServerBefore
from shardmerge.cli.moving.move_shapes import MovedSource, told
from shardmerge.cli.moving.procedure import Move, Servers, Wishes
from shardmerge.cli.moving.resumption import NewBinlog
from shardmerge.cli.moving.source_table import with_source
from shardmerge.connectors.binlog.binlog_events import RowsEvent
from shardmerge.connectors.binlog.gtids import gtids_of
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.formats.connector_status import ConnectorStatus, TaskStatus
from shardmerge.connectors.repair.marked_config import MARK
from shardmerge.schemas.model.errors import ConfigError, ContractError, StackError
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline, Source
from shardmerge.schemas.pipeline.text import pipeline_text
from tests.recorded import pipeline
from tests.unit.cli.moving.test_move_rules import GOOD, A, B

NAME = "p.s1"
NOTHING = NewBinlog()


class Killed(BaseException):
    """The process was killed."""


class Cluster:
    """A Connect cluster with one connector, which runs."""

    url = "http://connect:8083"

    def __init__(self, config: Mapping[str, str]) -> None:
        self.its_config = {**config, "name": NAME}
        self.state = "RUNNING"
        self.values: Mapping[str, Any] | None = {"file": "b.7", "pos": 4, "gtids": f"{A}:1-9"}
        self.done: list[str] = []
        self.readings: tuple[str, ...] = ()
        self.killed_at = ""
        self.is_killed = False
        self.interrupts: BaseException | None = None
        self.is_away = False
        self.objects = False
        self.fit: Mapping[str, str] = {}

    def _do(self, what: str) -> None:
        self.done.append(what)
        if what == self.killed_at:
            self.is_killed = True
            raise Killed

    def connectors(self) -> tuple[str, ...]:
        return (NAME, *self.readings)

    def config(self, name: str) -> Mapping[str, str] | None:
        return self.its_config if name == NAME else None

    def status(self, name: str) -> ConnectorStatus:
        tasks = () if self.state == "STOPPED" else (TaskStatus(0, self.state),)
        return ConnectorStatus(name, self.state, tasks)

    def offset(self, name: str) -> Mapping[str, Any] | None:
        return self.values

    def stop(self, name: str) -> None:
        self.state = "STOPPED"
        self._do("stop")
        if self.interrupts is not None:
            raise self.interrupts

    def set_offset(self, name: str, server: str, offset: Mapping[str, Any]) -> None:
        assert (self.state, server) == ("STOPPED", "s1")
        self.values = offset
        self._do("offset")

    def resume(self, name: str) -> None:
        if self.is_killed:
            raise Killed  # a process that is killed asks for nothing more
        if self.is_away:
            raise StackError("Connect cannot be reached", code="SM-4304")
        self.state = "RUNNING"
        self._do("resume")

    def refuse_unfit(self, config: Mapping[str, str]) -> None:
        if self.objects:
            raise StackError("refused", code="SM-4303")
        self.fit = config

    def set_config(self, name: str, config: Mapping[str, str]) -> None:
        self._do("before config")
        assert self.fit == {**config, "name": name}, "unchecked"
        self.its_config = dict(self.fit)
        self._do("config")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "pipeline.toml"
    file.write_text(pipeline_text(without_passwords(pipeline())), encoding="utf-8")
    return file


@pytest.fixture
def cluster(path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("PASSWORD", "x")
    parsed = of(path)
    made = Cluster(connector_config(parsed, parsed.source("s1")))

    def deploy(pipeline: Pipeline, rest: Cluster, timeout_s: float) -> None:
        assert rest.state == "RUNNING"
        assert [source.name for source in pipeline.sources] == ["s1"]
        rest.done.append("deploy")

    monkeypatch.setattr(procedure, "deploy_connectors", deploy)
    return made


def of(path: Path) -> Pipeline:
    return parse_pipeline(path.read_text(encoding="utf-8"), {"PASSWORD": "x"})


def moved(
    path: Path,
    cluster: Cluster,
    *,
    executed: str = f"{A}:1-9",
    left: str = "",
    delivered: tuple[str, ...] = (),
    host: str = "new",
    binlog: NewBinlog = NOTHING,
    **wishes: Any,
) -> MovedSource:
    parsed = of(path)
    source = parsed.source("s1")
    version = {"version": source.version, "character_set_server": source.charset}

    def ask(_: Source) -> NewServer:
        return NewServer(GOOD | version, gtids_of(executed), None)

    def before(_: Source) -> ServerBefore | None:
        return ServerBefore(gtids_of(left), is_read_only=True, server_id="1") if left else None

    rest = cast(ConnectRest, cluster)
    servers = Servers(ask, before, lambda _: frozenset(delivered), lambda *_: binlog, lambda *_: 1)
    wanted = replace(source, host=host)
    return Move(
        path, parsed, source, wanted, rest=rest, servers=servers, wishes=Wishes(**wishes)
    ).run()


def test_the_file_is_written_before_the_connector_runs_at_the_new_server(
    path: Path, cluster: Cluster
) -> None:
    found = moved(path, cluster)
    assert (found.outcome, found.epoch, found.state) == ("moved", 1, "RUNNING")
    assert cluster.done == ["stop", "before config", "config", "stop", "resume", "deploy"]
    source = of(path).source("s1")
    assert (source.host, source.epoch) == ("new", 1)
    assert cluster.its_config["database.hostname"] == "new"
    assert list(told(found)) == [
        "source s1: moved: s1:1 -> new:1, epoch 1",
        '  pipeline file: host = "new"',
        "  pipeline file: epoch = 1",
        "  p.s1: RUNNING",
        "  start again with the new file: sink, validator",
    ]


@pytest.mark.parametrize("place", ["stop", "before config", "config", "resume"])
def test_a_move_that_was_killed_anywhere_is_repeated(
    path: Path, cluster: Cluster, place: str
) -> None:
    cluster.killed_at = place
    with pytest.raises(Killed):
        moved(path, cluster)
    cluster.killed_at, cluster.is_killed = "", False
    assert moved(path, cluster).outcome in ("moved", "there already")
    assert moved(path, cluster).outcome == "there already"
    source = of(path).source("s1")
    assert (source.host, source.epoch, cluster.state) == ("new", 1, "RUNNING")
    assert cluster.its_config["transforms.epoch.static.value"] == "1"


def test_with_missing_transactions_everything_stays_as_it_was(path: Path, cluster: Cluster) -> None:
    before, config = path.read_text(), dict(cluster.its_config)
    found = moved(path, cluster, executed=f"{A}:1-7")
    assert (found.outcome, found.findings[0].code) == ("refused", "SM-6601")
    assert f"{A}:8-9" in next(told(found))
    assert cluster.done == ["stop", "resume"]
    assert (path.read_text(), cluster.its_config) == (before, config)


def test_a_connector_that_was_stopped_stays_stopped_when_the_move_is_refused(
    path: Path, cluster: Cluster
) -> None:
    cluster.state = "STOPPED"
    assert moved(path, cluster, executed=f"{A}:1-7").outcome == "refused"
    assert cluster.state == "STOPPED"


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), ContractError("no record can be read", code="SM-2107")],
)
def test_a_connector_runs_on_when_the_comparison_is_interrupted(
    path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def interrupted(_: Move) -> None:
        raise error

    monkeypatch.setattr(Move, "_findings", interrupted)
    with pytest.raises(type(error)):
        moved(path, cluster, wait_s=9.0)
    assert (cluster.state, cluster.done) == ("RUNNING", ["stop", "resume"])


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), StackError("has not stopped within 30 s", code="SM-4302")]
)
def test_a_connector_runs_on_when_the_wait_for_its_stop_ends(
    path: Path, cluster: Cluster, error: BaseException
) -> None:
    cluster.interrupts = error
    with pytest.raises(type(error)):
        moved(path, cluster)
    assert (cluster.state, cluster.done) == ("RUNNING", ["stop", "resume"])


def test_a_connector_that_cannot_be_resumed_is_told_with_what_lets_it_run(
    path: Path, cluster: Cluster
) -> None:
    cluster.interrupts, cluster.is_away = KeyboardInterrupt(), True
    with pytest.raises(StackError, match="cannot be reached") as raised:
        moved(path, cluster)
    assert "PUT http://connect:8083/connectors/p.s1/resume" in raised.value.hint


def test_a_connector_runs_on_when_the_file_cannot_be_replaced(
    path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise OSError("device or resource busy")

    monkeypatch.setattr(procedure, "replace_text", busy)
    before, config = path.read_text(), dict(cluster.its_config)
    with pytest.raises(OSError, match="busy"):
        moved(path, cluster)
    assert (cluster.state, path.read_text(), cluster.its_config) == ("RUNNING", before, config)


def test_a_connector_that_a_killed_call_has_stopped_is_told_when_the_next_one_refuses(
    path: Path, cluster: Cluster
) -> None:
    cluster.killed_at = "stop"
    with pytest.raises(Killed):
        moved(path, cluster)
    cluster.killed_at, cluster.is_killed = "", False
    found = moved(path, cluster, executed=f"{A}:1-7")
    assert (found.outcome, found.state) == ("refused", "STOPPED")
    assert [each.code for each in found.findings] == ["SM-6601", "SM-6612"]
    assert "PUT http://connect:8083/connectors/p.s1/resume" in "".join(told(found))


def test_what_the_server_before_has_alone_may_be_given_up(path: Path, cluster: Cluster) -> None:
    assert moved(path, cluster, left=f"{A}:1-12").findings[0].code == "SM-6603"
    found = moved(path, cluster, left=f"{A}:1-12", abandon=True)
    assert (found.outcome, found.findings[0].fault) == ("moved", False)


def test_a_dry_run_touches_nothing(path: Path, cluster: Cluster) -> None:
    before = path.read_text()
    assert moved(path, cluster, is_dry=True).outcome == "would move"
    assert moved(path, cluster, is_dry=True, executed=f"{A}:1-7").outcome == "refused"
    assert (cluster.done, path.read_text()) == ([], before)


def test_a_file_that_may_not_be_written_is_told_before_anything_is_done(
    path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ConfigError, match="may not be written") as caught:
        moved(path, cluster)
    assert (caught.value.code, cluster.done) == ("SM-6608", [])
    assert 'host = "new"; epoch = 1' in caught.value.hint
    path.write_text(with_source(path.read_text(), "s1", {"host": "new", "epoch": 1}))
    assert moved(path, cluster).outcome == "moved", "edited by hand it goes on"


def test_a_sink_that_reads_the_source_itself_must_be_started_again(
    path: Path, cluster: Cluster
) -> None:
    path.write_text(with_source(path.read_text(), "s1", {"snapshot": "spark"}))
    assert (
        list(told(moved(path, cluster)))[-1] == "  start again with the new file: sink, validator"
    )


def test_a_link_to_the_file_stays_a_link(path: Path, cluster: Cluster) -> None:
    link = path.with_name("link.toml")
    link.symlink_to(path)
    path.chmod(0o640)
    moved(link, cluster)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert of(path).source("s1").host == "new"


@pytest.mark.parametrize("busy", ["repair", "reading", "snapshot"])
def test_a_connector_that_is_busy_is_left_alone(path: Path, cluster: Cluster, busy: str) -> None:
    if busy == "repair":
        cluster.its_config[MARK] = "{}"
    elif busy == "reading":
        cluster.readings = (f"{NAME}.whole.0123456789ab",)
    else:
        cluster.values = {"snapshot": "INITIAL", "file": "b.7", "pos": 4}
    found = moved(path, cluster)
    assert (found.outcome, found.findings[0].code) == ("refused", "SM-6607")
    assert cluster.state == "RUNNING"


def test_a_configuration_that_is_refused_leaves_the_file_alone(
    path: Path, cluster: Cluster
) -> None:
    before = path.read_text()
    cluster.objects = True
    with pytest.raises(StackError):
        moved(path, cluster)
    assert (path.read_text(), cluster.state) == (before, "RUNNING")


def test_a_connector_that_there_is_not_is_not_moved(path: Path, cluster: Cluster) -> None:
    parsed = of(path)
    source = parsed.source("s2")
    servers = Servers(
        lambda _: NewServer({}, None, None),
        lambda _: None,
        lambda _: frozenset(),
        lambda *_: NewBinlog(),
        lambda *_: 1,
    )
    rest = cast(ConnectRest, cluster)
    with pytest.raises(StackError, match=r"no connector p\.s2"):
        Move(path, parsed, source, source, rest=rest, servers=servers, wishes=Wishes())


def test_a_transaction_whose_rows_came_counts_as_read(path: Path, cluster: Cluster) -> None:
    """The offset names it only when the connector has read on behind it."""
    assert cluster.values is not None
    cluster.values = {**cluster.values, "event": 3}
    found = moved(path, cluster, delivered=(f"{A}:7", f"{A}:10"))
    assert (found.outcome, found.findings[0].code) == ("refused", "SM-6601")
    assert found.findings[0].text.endswith(f"{A}:10")
    found = moved(path, cluster, executed=f"{A}:1-10", delivered=(f"{A}:7", f"{A}:10"))
    assert found.outcome == "moved"


def in_ten(index: int) -> RowsEvent:
    return RowsEvent("b.1", 0, 9, 0, index, f"{A}:10", "app.t")


def test_an_offset_within_a_transaction_is_written_anew_if_all_of_it_is_delivered(
    path: Path, cluster: Cluster
) -> None:
    assert cluster.values is not None
    cluster.values = {**cluster.values, "event": 2, "row": 1}
    whole = NewBinlog(f"{B}:1", [in_ten(2)])
    found = moved(path, cluster, executed=f"{A}:1-10", delivered=(f"{A}:10",), binlog=whole)
    assert found.outcome == "moved"
    assert cluster.values == {"file": "b.7", "pos": 4, "gtids": f"{A}:1-10"}
    assert cluster.done.index("offset") < cluster.done.index("config")


def test_a_move_in_the_middle_of_a_transaction_that_is_not_the_next_one_is_refused(
    path: Path, cluster: Cluster
) -> None:
    assert cluster.values is not None
    cluster.values = before = {**cluster.values, "event": 2, "row": 1}
    partly = NewBinlog(f"{B}:1", [in_ten(2), in_ten(4)])
    found = moved(path, cluster, executed=f"{A}:1-10", delivered=(f"{A}:10",), binlog=partly)
    assert (found.outcome, found.findings[0].code) == ("refused", "SM-6614")
    assert f"has {B}:1 before it" in found.findings[0].text
    assert (cluster.values, cluster.state) == (before, "RUNNING")
