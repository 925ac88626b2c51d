"""A MySQL server of the local stack: data directory, options, health."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pymysql

from shardmerge.connectors.huge_pages import HUGE_PAGES
from shardmerge.local.install.artifacts import Artifacts
from shardmerge.local.install.files import exclusive_lock, tail
from shardmerge.schemas.model.errors import StackError

from .processes import LOOPBACK, HealthCheck, ProcessSpec, is_listening

SOCKET = "mysql.sock"
"""In the data directory."""
SOCKET_LOCK = f"{SOCKET}.lock"
"""Beside it. A killed server leaves it, with its pid. If another process has that pid by then, such
as after a restart of the machine, the server does not start."""
USER = "shardmerge"
PASSWORD = "shardmerge"
_INIT_SQL = f"""\
CREATE USER '{USER}'@'%' IDENTIFIED WITH mysql_native_password BY '{PASSWORD}';
GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'%' WITH GRANT OPTION;
"""
_COMMON = (
    "--mysqlx=OFF",
    "--skip-name-resolve",
    "--performance-schema=OFF",
    "--character-set-server=utf8mb4",
    "--default-time-zone=+00:00",
    "--local-infile=1",
    "--max-connections=500",
    "--max-allowed-packet=64M",
    "--innodb-log-file-size=64M",
    # Survives a killed server, not a power cut: that is enough for trying things out.
    "--innodb-flush-log-at-trx-commit=2",
    "--sync-binlog=0",
    # The default since MySQL 8.4. With it, pages of a bulk load would be hashed in vain.
    "--innodb-adaptive-hash-index=OFF",
)


def prepare_data(artifacts: Artifacts, data: Path) -> None:
    """Make a data directory, by copying one that was initialised once; nothing if it exists."""
    if data.exists():
        return
    template = artifacts.templates / "mysql"
    if not template.exists():
        with exclusive_lock(artifacts.templates / "mysql.lock"):
            if not template.exists():
                _initialise(artifacts, template)
    data.parent.mkdir(parents=True, exist_ok=True)
    partial = data.with_name(f"{data.name}.new")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(template, partial)
    partial.rename(data)


def mysql_spec(
    artifacts: Artifacts,
    name: str,
    data: Path,
    port: int,
    server_id: int,
    *,
    binlog: bool,
    gtids: bool = True,
    buffer_pool: str = "128M",
    further: Sequence[str] = (),
    host: str = LOOPBACK,
) -> ProcessSpec:
    """The server's process.

    Args:
        artifacts: What to run.
        name: Of the process.
        data: The data directory.
        port: On 127.0.0.1.
        server_id: Unique among servers and connectors.
        binlog: Whether it writes a binlog, with rows and full images.
        gtids: Whether that has GTIDs, as a source's has.
        buffer_pool: InnoDB's buffer pool size.
        further: Options besides.
        host: A further address of this machine on which it listens.
    """
    options = [
        *_base_command(artifacts, data),
        *_COMMON,
        f"--bind-address={','.join(dict.fromkeys((LOOPBACK, host)))}",
        f"--port={port}",
        f"--server-id={server_id}",
        # Relative to the data directory: a socket's whole path may not pass 107 bytes.
        f"--socket={SOCKET}",
        "--pid-file=mysqld.pid",
        f"--innodb-buffer-pool-size={buffer_pool}",
        *further,
    ]
    if binlog:
        options += [
            "--log-bin=binlog",
            "--binlog-format=ROW",
            "--binlog-row-image=FULL",
        ]
    else:
        options += ["--skip-log-bin"]
    if binlog and gtids:
        options += [
            # Without GTIDs a connector that is restarted right behind a DDL may not find out which
            # part of its schema history it has passed, and then fails for good (Debezium 3.6.1).
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
        ]
    return ProcessSpec(
        name=name,
        argv=tuple(options),
        ports=(port,),
        env={**_environment(artifacts), **HUGE_PAGES},
        health=server_health(port),
        start_timeout_s=60,
        stop_timeout_s=30,
        leftovers=(data / SOCKET_LOCK,),
    )


def _base_command(artifacts: Artifacts, data: Path) -> list[str]:
    command = [
        str(artifacts.mysql_home / "bin" / "mysqld"),
        "--no-defaults",
        f"--basedir={artifacts.mysql_home}",
    ]
    command.append(f"--datadir={data}")
    # mysqld refuses to run as root unless told so by name.
    return [*command, "--user=root"] if os.geteuid() == 0 else command


def _environment(artifacts: Artifacts) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": str(artifacts.library_path)}


def _initialise(artifacts: Artifacts, template: Path) -> None:
    partial = template.with_name("mysql.new")
    shutil.rmtree(partial, ignore_errors=True)
    init_file = template.with_name("mysql-init.sql")
    init_file.write_text(_INIT_SQL)
    log = template.with_name("mysql-init.log")
    command = [
        *_base_command(artifacts, partial),
        *_COMMON,
        f"--bind-address={LOOPBACK}",
        "--initialize-insecure",
        "--skip-log-bin",
        f"--init-file={init_file}",
    ]
    with log.open("wb") as output:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **_environment(artifacts)},
            check=False,
        )
    if result.returncode != 0:
        raise StackError(
            f"mysqld could not initialise a data directory, see {log}:\n{tail(log)}", code="SM-4609"
        )
    # Each server makes its own UUID: two servers with one UUID would not replicate side by side.
    (partial / "auto.cnf").unlink(missing_ok=True)
    partial.rename(template)


def server_health(port: int) -> HealthCheck:
    """Healthy when the stack's user can connect."""

    def check() -> str | None:
        if not is_listening(port):
            return f"nothing listens on port {port}"
        try:
            connection = pymysql.connect(
                host="127.0.0.1", port=port, user=USER, password=PASSWORD, connect_timeout=2
            )
        except pymysql.MySQLError as error:
            return f"no connection on port {port}: {error}"
        connection.close()
        return None

    return check
