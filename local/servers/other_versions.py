"""Servers of other versions and flavours, beside the stack, to compare the tracker with.

::

    with running_server("mysql97", Path(".local/try"), port) as server:
        print(server.version)   # what was asked for is the series; this is what runs

=========== ============================== =============================================
name        server                         from
=========== ============================== =============================================
mysql80     MySQL 8.0.15                   the local stack's own artifacts
mysql57     MySQL 5.7.22                   ivy-mysql57.xml, checksums-mysql57.txt
mysql97     the newest MySQL of Debian sid Debian's archive, see ``debs``
mariadb1011 MariaDB 10.11                  Debian bookworm's archive, see ``debs``
mariadb118  MariaDB 11.8                   Debian trixie's archive, see ``debs``
=========== ============================== =============================================

Programs are kept in the cache folder until that is removed; data lives in the given directory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from shardmerge.connectors.huge_pages import HUGE_PAGES
from shardmerge.local.install.artifacts import (
    DEFAULT_CACHE,
    find_java,
    read_checksums,
    resolve,
    retrieve,
    unpack_mysql,
    verify_checksums,
)
from shardmerge.local.install.debs import Wanted, loader_command, unpack_package
from shardmerge.local.install.files import exclusive_lock, tail
from shardmerge.local.install.system_libraries import provide_libraries
from shardmerge.schemas.model.errors import StackError

from .mysql import (
    PASSWORD,
    SOCKET,
    SOCKET_LOCK,
    USER,
    mysql_spec,
    prepare_data,
    server_health,
)
from .processes import ProcessSpec, Supervisor

Say = Callable[[str], None]
NAMES = ("mysql80", "mysql97", "mariadb1011", "mariadb118", "mysql57")
_HERE = Path(__file__).parent.parent / "install"
_STAMP = "complete"
_NAME = "server"
_DEBS: Mapping[str, Wanted] = {
    "mysql97": Wanted(
        ("mysql-server-core", "mysql-server-core-9.7", "mysql-server-core-8.4"), "sid"
    ),
    "mariadb1011": Wanted(("mariadb-server-core",), "bookworm"),
    "mariadb118": Wanted(("mariadb-server-core",), "trixie"),
}
_SERVER_PATHS = {
    "mysql97": "usr/sbin/mysqld",
    "mariadb1011": "usr/sbin/mariadbd",
    "mariadb118": "usr/sbin/mariadbd",
}
_OPTIONS = (
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--performance-schema=OFF",
    "--character-set-server=utf8mb4",
    "--default-time-zone=+00:00",
    "--skip-log-bin",
    # Debian's folder for LOAD DATA does not exist here.
    "--secure-file-priv=",
    "--max-allowed-packet=64M",
)
_CARELESS = (
    # The data is thrown away: nothing has to survive a power cut.
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--skip-innodb-doublewrite",
)
_ONLY_MYSQL_8 = ("--mysqlx=OFF",)
_CREATE_USER = f"""\
CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';
GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'%' WITH GRANT OPTION;
"""
_MARIADB_SYSTEM_TABLES = (
    "system_tables.sql",
    "performance_tables.sql",
    "system_tables_data.sql",
)
"""The scripts that mariadb-install-db runs on a new server, except those of help and time zones.
Their names begin with ``mysql_``, since 11.8 with ``mariadb_``."""


@dataclass(frozen=True, slots=True)
class Program:
    """A server that can be started.

    Attributes:
        name: One of ``NAMES``.
        command: Program and the options that every start needs.
        env: Added to its environment.
        share: Folder of its messages and system tables.
        version: What it says of itself.
    """

    name: str
    command: tuple[str, ...]
    share: Path
    version: str
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that runs on 127.0.0.1; user and password are the local stack's."""

    name: str
    port: int
    version: str


@contextmanager
def running_server(
    name: str, directory: Path, port: int, *, cache: Path = DEFAULT_CACHE, say: Say = lambda _: None
) -> Iterator[RunningServer]:
    """Start a server with new data in a directory; it is stopped at the end.

    Raises:
        StackError: There is no server of that name, it could not be had, or it did not start.
    """
    if name not in NAMES:
        raise StackError(f"no server {name!r}", hint=f"one of {', '.join(NAMES)}", code="SM-4610")
    directory = directory.absolute()
    data = directory / "data"
    if name == "mysql80":
        artifacts = resolve(cache, say)
        prepare_data(artifacts, data)
        spec = mysql_spec(artifacts, _NAME, data, port, 901, binlog=False)
        spec = replace(spec, argv=(*spec.argv, *_CARELESS))
        version = _version((str(artifacts.mysql_home / "bin" / "mysqld"),), spec.env)
    else:
        program = provide(name, cache, say)
        initialise(program, directory, data)
        spec = server_spec(program, directory, data, port)
        version = program.version
    say(f"{name}: {version}, port {port}")
    supervisor = Supervisor(directory)
    supervisor.spawn(spec)
    try:
        supervisor.wait_healthy(spec)
        yield RunningServer(name, port, version)
    finally:
        supervisor.stop(_NAME)


def provide(name: str, cache: Path = DEFAULT_CACHE, say: Say = lambda _: None) -> Program:
    """Fetch the program of a server, except of the stack's own, if it is not there yet.

    Raises:
        StackError: It could not be had, a checksum differs, or it does not run here.
    """
    home = cache.absolute() / "servers" / name
    with exclusive_lock(cache.absolute() / f"{name}.lock"):
        is_new = not (home / _STAMP).exists()
        if name == "mysql57":
            program = _from_ivy(name, home, cache.absolute(), say, fetch=is_new)
        else:
            program = _from_debs(name, home, say, fetch=is_new)
        if is_new:
            (home / _STAMP).write_text(f"{program.version}\n{time.time():.0f}\n")
    return program


def _from_debs(name: str, home: Path, say: Say, *, fetch: bool) -> Program:
    root = home / "root"
    if fetch:
        root, package = unpack_package(_DEBS[name], home, say)
        say(f"unpacked {package}")
    share = next(
        path
        for n in ("mariadb", "mysql")
        if (path := root / "usr" / "share" / n / "charsets").is_dir()
    ).parent
    loader = loader_command(root, _SERVER_PATHS[name])
    return Program(
        name, (*loader, "--no-defaults", f"--basedir={root / 'usr'}", *_messages(share)),
        share, _version(loader, {}),
    )  # fmt: skip


def _messages(share: Path) -> tuple[str, ...]:
    return (f"--lc-messages-dir={share}", f"--character-sets-dir={share / 'charsets'}")


def _from_ivy(name: str, home: Path, cache: Path, say: Say, *, fetch: bool) -> Program:
    server = home / "mysql"
    binary = server / "bin" / "mysqld"
    if fetch:
        shutil.rmtree(home, ignore_errors=True)
        retrieved = home / "retrieved"
        retrieve(_HERE / f"ivy-{name}.xml", retrieved, cache, find_java(), say)
        checksums = (_HERE / f"checksums-{name}.txt").read_text()
        verify_checksums(retrieved, read_checksums(checksums))
        unpack_mysql(next((retrieved / "mysql").glob("*.jar")), server)
        shutil.rmtree(retrieved)
        provide_libraries(binary, home / "libraries", say)
    env = {"LD_LIBRARY_PATH": str(home / "libraries" / "lib")}
    return Program(
        name, (str(binary), "--no-defaults", f"--basedir={server}"), server / "share",
        _version((str(binary),), env), env,
    )  # fmt: skip


def _version(command: tuple[str, ...], env: Mapping[str, str]) -> str:
    result = subprocess.run(
        [*command, "--no-defaults", "--version"], env={**os.environ, **env}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if result.returncode != 0:
        text = (result.stderr or result.stdout).strip()[-500:]
        raise StackError(f"{command[-1]} does not run here: {text}", code="SM-4607")
    return result.stdout.strip().partition("Ver ")[2] or result.stdout.strip()


def _options(program: Program, data: Path) -> list[str]:
    options = [*program.command, f"--datadir={data}", *_OPTIONS, *_CARELESS]
    if program.name == "mysql97":
        options += _ONLY_MYSQL_8
    # A server refuses to run as root unless told so by name.
    return [*options, "--user=root"] if os.geteuid() == 0 else options


def initialise(program: Program, directory: Path, data: Path) -> None:
    """Make a data directory with the stack's user; nothing if it exists.

    Raises:
        StackError: The server could not, with the end of its log.
    """
    if data.exists():
        return
    directory.mkdir(parents=True, exist_ok=True)
    init_file = directory / "init.sql"
    init_file.write_text(_CREATE_USER)
    log = directory / "init.log"
    command = _options(program, data)
    script = b""
    if program.name.startswith("mariadb"):
        (data / "mysql").mkdir(parents=True)
        # A MariaDB that starts removes the temporary tables of others from a common folder.
        command += ["--bootstrap", f"--tmpdir={directory.absolute()}"]
        prefix = "mariadb" if (program.share / "mariadb_system_tables.sql").exists() else "mysql"
        pieces = [
            (program.share / f"{prefix}_{name}").read_bytes() for name in _MARIADB_SYSTEM_TABLES
        ]
        script = b"use mysql;\n" + b"\n".join(pieces)
    else:
        command += ["--initialize-insecure", f"--init-file={init_file}"]
    with log.open("wb") as output:
        result = subprocess.run(
            command, input=script, stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, **program.env}, check=False,
        )  # fmt: skip
    if result.returncode != 0:
        shutil.rmtree(data, ignore_errors=True)
        raise StackError(
            f"{program.name} could not initialise a data directory, see {log}:\n{tail(log)}",
            code="SM-4609",
        )


def server_spec(program: Program, directory: Path, data: Path, port: int) -> ProcessSpec:
    """The process of a server without a binlog, whose data directory is ``initialise``'s."""
    return ProcessSpec(
        name=_NAME,
        argv=(
            *_options(program, data),
            f"--port={port}",
            # Relative to the data directory: a socket's whole path may not pass 107 bytes.
            f"--socket={SOCKET}",
            "--pid-file=mysqld.pid",
            # At each start, because MariaDB's bootstrap cannot create users yet.
            f"--init-file={directory / 'init.sql'}",
        ),
        ports=(port,),
        env={**program.env, **HUGE_PAGES},
        health=server_health(port),
        start_timeout_s=60,
        stop_timeout_s=30,
        leftovers=(data / SOCKET_LOCK,),
    )
