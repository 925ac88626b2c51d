"""The TiDB that the tests of this folder run against: a given one, or one of our own."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.pipeline.settings import Target
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / ".local" / "tidb" / "tidb-server"
GIVEN = os.environ.get("SHARDMERGE_TIDB", "")
"""``USER:PASSWORD@HOST:PORT``, with ``/VERSION`` or without; empty: one is started."""
_START_S = 120


def address_of(text: str) -> MySqlAddress:
    """The address in ``USER:PASSWORD@HOST:PORT``."""
    url = urlsplit(f"mysql://{text}")
    user, password = unquote(url.username or "root"), unquote(url.password or "")
    return MySqlAddress(url.hostname or "127.0.0.1", url.port or 4000, user, password)


def tidb_target(text: str) -> Target:
    """``[target]`` of a pipeline that merges into a TiDB, asked for its version.

    Raises:
        TargetError: It does not answer, or is no TiDB.
    """
    address = address_of(text)
    session = MySqlSession(address)
    facts = session.facts
    session.close()
    if facts.kind != "tidb":
        raise TargetError(f"{address.host}:{address.port} is {facts.kind} {facts.version_text}")
    server = (address.host, address.port, address.user, address.password)
    return Target(*server, kind="tidb", version=".".join(map(str, facts.version)))


@contextmanager
def running_tidb(folder: Path, more: str = "", status: int = 0) -> Iterator[MySqlAddress]:
    """A TiDB that keeps its tables in a folder, until the end of the block: then it is killed.

    Args:
        folder: For its configuration, its tables and its log; an absolute path. Tables that are
            there are found again.
        more: Lines of the configuration, of its top level or of sections.
        status: Port of its HTTP interface; 0: any.

    Raises:
        TargetError: It does not come up.
    """
    if not SERVER.exists():
        raise TargetError(
            f"{SERVER.relative_to(ROOT)} is missing",
            hint="make tidb builds it; or name a TiDB that runs:"
            " make test-tidb TIDB=USER:PASSWORD@HOST:PORT",
        )
    folder.mkdir(parents=True, exist_ok=True)
    port, status = free_port(), status or free_port()
    top, _, sections = more.partition("[")
    lines = (
        f'host = "127.0.0.1"\nport = {port}\nstore = "unistore"\npath = "{folder / "data"}"\n'
        f'lease = "45s"\n{top}\n'
        f'[status]\nstatus-host = "127.0.0.1"\nstatus-port = {status}\n'
        f'[log]\nlevel = "error"\n' + (f"[{sections}" if sections else "")
    )
    (folder / "tidb.toml").write_text(lines, encoding="utf-8")
    address = MySqlAddress("127.0.0.1", port, "root", "")
    with (folder / "tidb.log").open("wb") as log:
        process = subprocess.Popen(
            [str(SERVER), "-config", "tidb.toml"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(address, process, folder / "tidb.log")
        yield address
    finally:
        process.kill()
        process.wait()


def _wait(address: MySqlAddress, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_S
    while True:
        session = MySqlSession(address)
        try:
            session.query("SELECT 1")
        except TargetError:
            if process.poll() is not None or time.monotonic() > end:
                tail = log.read_text(encoding="utf-8", errors="replace")[-2_000:]
                raise TargetError(f"TiDB does not come up: {tail}", hint=f"see {log}") from None
            time.sleep(0.2)
        else:
            return
        finally:
            session.close()


def free_port() -> int:
    """One that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
