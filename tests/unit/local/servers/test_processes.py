"""The supervisor, with real processes: small Python programs."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shardmerge.local.install.files import exclusive_lock, tail
from shardmerge.local.servers.processes import (
    ProcessSpec,
    Supervisor,
    is_listening,
    require_free_port,
)
from shardmerge.schemas.model.errors import StackError

FOREVER = "import time\nwhile True: time.sleep(0.05)"
STUBBORN = (
    "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\n"
)
PARENT = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {FOREVER!r}])\n"


def spec(code: str = FOREVER, name: str = "p", **rest: object) -> ProcessSpec:
    return ProcessSpec(name, (sys.executable, "-S", "-c", code), **rest)  # type: ignore[arg-type]


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    supervisor = Supervisor(tmp_path / "stack")
    yield supervisor
    for name in supervisor.names():
        supervisor.stop(name, timeout_s=0.0)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_started_process_runs_until_it_is_stopped(supervisor: Supervisor) -> None:
    pid = supervisor.spawn(spec())

    assert supervisor.pid("p") == pid
    assert supervisor.names() == ("p",)
    supervisor.stop("p")
    assert supervisor.pid("p") is None
    assert supervisor.names() == ()
    supervisor.stop("p")


def test_output_goes_to_the_log_and_a_restart_appends(supervisor: Supervisor) -> None:
    for word in ("first", "second"):
        supervisor.spawn(spec(f"print({word!r})"))
        until(lambda: supervisor.pid("p") is None)

    assert supervisor.log_path("p").read_text() == "first\nsecond\n"


def test_what_hinders_the_start_of_a_killed_process_is_removed(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    lock = tmp_path / "socket.lock"
    lock.write_text("1")
    process = spec(leftovers=(lock, tmp_path / "not there"))
    supervisor.spawn(process)
    assert not lock.exists()
    lock.write_text("its own")
    with pytest.raises(StackError, match="runs already"):
        supervisor.spawn(process)
    assert lock.exists()


def test_a_process_is_not_started_twice(supervisor: Supervisor) -> None:
    supervisor.spawn(spec())

    with pytest.raises(StackError, match="p runs already"):
        supervisor.spawn(spec())


def test_a_process_that_does_not_listen_to_term_is_killed(supervisor: Supervisor) -> None:
    supervisor.spawn(spec(STUBBORN + FOREVER))
    until(lambda: "deaf" in supervisor.log_path("p").read_text())

    supervisor.stop("p", timeout_s=0.1)

    assert supervisor.pid("p") is None


def test_kill_ends_the_children_too(supervisor: Supervisor) -> None:
    pid = supervisor.spawn(spec(PARENT + FOREVER))
    until(lambda: bool(children(pid)))
    (child,) = children(pid)

    supervisor.kill("p")

    until(lambda: not exists(child))
    with pytest.raises(StackError, match="p does not run"):
        supervisor.kill("p")


def test_children_that_outlived_their_leader_are_ended_before_the_next_start(
    supervisor: Supervisor,
) -> None:
    pid = supervisor.spawn(spec(PARENT + FOREVER))
    until(lambda: bool(children(pid)))
    (child,) = children(pid)
    os.kill(pid, signal.SIGKILL)
    until(lambda: supervisor.pid("p") is None)
    assert exists(child)

    supervisor.spawn(spec())

    until(lambda: not exists(child))


def test_a_later_supervisor_of_the_directory_stops_what_an_earlier_one_left(
    supervisor: Supervisor,
) -> None:
    supervisor.spawn(spec())
    later = Supervisor(supervisor.directory)

    later.stop("p")

    assert supervisor.pid("p") is None


def test_a_pid_that_belongs_to_another_process_now_is_left_alone(supervisor: Supervisor) -> None:
    supervisor.spawn(spec(name="other"))
    record = json.loads((supervisor.directory / "run" / "other.json").read_text())
    environment = Path(f"/proc/{record['pid']}/environ")
    until(lambda: str(supervisor.directory).encode() in environment.read_bytes())
    stale = record | {"start_time": record["start_time"] - 1}
    (supervisor.directory / "run" / "p.json").write_text(json.dumps(stale))

    assert supervisor.pid("p") is None
    supervisor.stop("p")

    assert supervisor.pid("other") == record["pid"]


def test_a_process_is_waited_for_until_it_is_healthy(supervisor: Supervisor) -> None:
    answers = iter(["not yet", "nearly", None])
    wanted = spec(health=lambda: next(answers))
    supervisor.spawn(wanted)

    supervisor.wait_healthy(wanted)

    assert list(answers) == []


def test_a_process_that_ends_while_starting_is_told_with_its_log(supervisor: Supervisor) -> None:
    wanted = spec("import sys\nprint('no disk')\nsys.exit(3)", health=lambda: "not yet")
    supervisor.spawn(wanted)

    with pytest.raises(StackError, match=r"(?s)p ended with exit code 3 .*p\.log:\n  no disk"):
        supervisor.wait_healthy(wanted)


def test_a_process_that_stays_unhealthy_is_told_with_its_reason(supervisor: Supervisor) -> None:
    wanted = spec(health=lambda: "port 1 is silent", start_timeout_s=0.0)
    supervisor.spawn(wanted)

    with pytest.raises(StackError, match="not healthy after 0 s: port 1 is silent"):
        supervisor.wait_healthy(wanted)


def test_a_program_that_does_not_exist_is_named(supervisor: Supervisor) -> None:
    with pytest.raises(StackError, match="/no/such/program"):
        supervisor.spawn(ProcessSpec("p", ("/no/such/program",)))


def test_an_occupied_port_is_named_and_nothing_is_started(supervisor: Supervisor) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]

        with pytest.raises(StackError, match=f"port {port} on 127.0.0.1, needed by p") as caught:
            supervisor.spawn(spec(ports=(port,)))
        assert is_listening(port)

    assert str(port) in caught.value.hint
    assert supervisor.pid("p") is None
    require_free_port(port, "p")
    assert not is_listening(port)


def test_the_tail_of_a_log_is_short(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    assert "no log" in tail(log)
    log.write_text("")
    assert "empty log" in tail(log)
    log.write_text("".join(f"line {i}\n" for i in range(1000)))
    assert tail(log, 2) == "  line 998\n  line 999"


def test_an_exclusive_lock_is_free_again_after_its_block(tmp_path: Path) -> None:
    for _ in range(2):
        with exclusive_lock(tmp_path / "deep" / "x.lock"):
            assert (tmp_path / "deep" / "x.lock").exists()
