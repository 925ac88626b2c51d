"""Gets a Debian package with everything it needs, into a private folder, without installing it.

Theory of operation of ``unpack_package``:

1. Packages come from where the machine's own apt configuration says: its ``Acquire`` settings, and
   the archive of its distribution. On Debian that archive holds every suite, so the wanted suite is
   read from there. Elsewhere the machine's own suites are used.
2. apt runs with its own configuration, package lists and package status. The status is empty, so
   "what must be installed" includes every dependency, even the C library. apt checks the
   archive's signature and every package's checksum. No root is needed and no hook runs.
3. The packages are unpacked into one folder. What is in it runs through the loader that came
   with it, so the machine's own C library does not matter: see ``loader_command``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from shardmerge.schemas.model.errors import StackError

_OS_RELEASE = Path("/etc/os-release")
_KEYRINGS = (
    Path("/usr/share/keyrings/debian-archive-keyring.pgp"),
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
)
_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Wanted:
    """A package.

    Attributes:
        names: The first one that the archive has is taken: names differ by the server's version.
        suite: Of Debian's archive.
    """

    names: tuple[str, ...]
    suite: str


def unpack_package(wanted: Wanted, home: Path, say: Callable[[str], None]) -> tuple[Path, str]:
    """Download a package and what it depends on, and unpack all of it.

    Args:
        wanted: What to get; the newest version of it is taken.
        home: A folder for this package alone; its old content is removed.
        say: Called with a line of progress.

    Returns:
        The folder that stands for the root directory, and the package's name and version.

    Raises:
        StackError: apt is missing, no archive has the package, or it could not be downloaded.
    """
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    failures: list[str] = []
    for sources in source_lists(
        wanted.suite, _distribution(_OS_RELEASE), index_targets(), archive_keyring()
    ):
        apt = _Apt(home, sources)
        try:
            say(f"reading the package lists (privately): {sources.strip() or 'those of apt'}")
            apt.run("apt-get", "-q", "update")
            package = _first_known(apt, wanted.names)
            say(f"fetching {package} and what it needs")
            apt.run(
                "apt-get", "-q", "-y", "--no-install-recommends", "--download-only", "install",
                package.partition(" ")[0],
            )  # fmt: skip
        except StackError as error:
            failures.append(error.message)
            continue
        debs = sorted((home / "cache" / "archives").glob("*.deb"))
        if not debs:
            raise StackError(f"apt downloaded nothing for {package} into {home}", code="SM-4605")
        root = home / "root"
        for deb in debs:
            _run(["dpkg-deb", "-x", str(deb), str(root)], {})
        (home / "packages.txt").write_text("".join(f"{deb.name}\n" for deb in debs))
        shutil.rmtree(home / "cache")
        shutil.rmtree(home / "lists")
        return root, package
    raise StackError(
        f"no package {' or '.join(wanted.names)}: {'; '.join(failures) or 'apt has no sources'}",
        hint="it needs apt, the network and Debian's archive among apt's sources; "
        "SHARDMERGE_FUZZ_PORT names a server that runs already",
        code="SM-4605",
    )


def loader_command(root: Path, program: str) -> tuple[str, ...]:
    """How to start a program of an unpacked root directory with the libraries in it.

    Raises:
        StackError: The program, or the loader, is not in it.
    """
    binary = root / program
    loaders = sorted(path for path in root.glob("**/ld-linux*.so.*") if path.is_file())
    if not binary.is_file() or not loaders:
        raise StackError(
            f"{root} holds no {program if loaders else 'loader'}",
            hint="the package's layout has changed: remove the folder and try again",
            code="SM-4605",
        )
    folders = sorted(
        str(path)
        for pattern in ("lib/*-linux-gnu*", "usr/lib/*-linux-gnu*")
        for path in root.glob(pattern)
        if path.is_dir()
    )
    return (str(loaders[0]), "--inhibit-cache", "--library-path", ":".join(folders), str(binary))


def source_lists(
    suite: str, distribution: tuple[str, str], targets: Iterable[str], keyring: str
) -> list[str]:
    """The contents of sources.list to try in turn; "" stands for the machine's own.

    Args:
        suite: Of Debian's archive.
        distribution: ``ID`` and ``VERSION_CODENAME`` of os-release(5).
        targets: ``archive|release|component`` lines of apt's package lists.
        keyring: File of Debian's archive keys; "" for those that apt trusts anyway.
    """
    name, codename = distribution
    if name != "debian":
        return [""]
    own = {codename, "oldstable", "stable", "testing", "unstable", "sid"}
    option = f"[signed-by={keyring}] " if keyring else ""
    lists: list[str] = []
    for target in targets:
        archive, release, component = target.split("|")
        line = f"deb {option}{archive} {suite} main\n"
        if release in own and component == "main" and line not in lists:
            lists.append(line)
    return lists


def index_targets() -> list[str]:
    """Package lists as ``archive|release|component`` lines, as apt's own sources give them."""
    text = _run(
        [
            "apt-get", "indextargets", "--format", "$(REPO_URI)|$(RELEASE)|$(COMPONENT)",
            "Created-By: Packages",
        ],
        {},
    )  # fmt: skip
    return [line for line in text.splitlines() if line.count("|") == 2]


def archive_keyring() -> str:
    """The file of Debian's archive keys; "" where the package that holds it is missing."""
    return next((str(path) for path in _KEYRINGS if path.exists()), "")


def _distribution(path: Path) -> tuple[str, str]:
    try:
        text = path.read_text()
    except OSError as error:
        raise StackError(
            f"{path} cannot be read: {error}",
            hint="it needs a Debian or Ubuntu system",
            code="SM-4605",
        ) from None
    fields = dict(re.findall(r"^(\w+)=\"?([^\"\n]*)\"?$", text, re.MULTILINE))
    return fields.get("ID", ""), fields.get("VERSION_CODENAME", "")


def _first_known(apt: _Apt, names: Sequence[str]) -> str:
    for name in names:
        text = apt.run("apt-cache", "policy", name)
        found = re.search(r"Candidate: (\d\S*)", text)
        if found is not None:
            return f"{name} {found[1]}"
    raise StackError(
        f"no {' or '.join(names)} in {apt.sources.strip() or 'the sources of apt'}", code="SM-4605"
    )


class _Apt:
    """apt with lists, cache, status and sources of its own."""

    def __init__(self, home: Path, sources: str) -> None:
        self.sources = sources
        for sub in ("lists/partial", "cache/archives/partial", "log"):
            (home / sub).mkdir(parents=True, exist_ok=True)
        (home / "status").write_text("")
        lines = [
            line
            for line in _run(["apt-config", "dump"], {}).splitlines()
            if line.startswith("Acquire::") and not line.startswith("Acquire::IndexTargets")
        ]
        settings = {
            # None of the system's own hooks, which expect the system's own folders.
            "Dir::Etc::main": "/dev/null",
            "Dir::Etc::parts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State::lists": f"{home}/lists",
            "Dir::State::status": f"{home}/status",
            "Dir::State::extended_states": f"{home}/extended_states",
            "Dir::Cache": f"{home}/cache",
            "Dir::Log": f"{home}/log",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Debug::NoLocking": "true",
        }
        if sources:
            (home / "sources.list").write_text(sources)
            settings["Dir::Etc::sourcelist"] = f"{home}/sources.list"
            settings["Dir::Etc::sourceparts"] = "/dev/null"
        lines += [f'{name} "{value}";' for name, value in settings.items()]
        self._configuration = home / "apt.conf"
        self._configuration.write_text("\n".join(lines) + "\n")

    def run(self, *command: str) -> str:
        return _run(command, {"APT_CONFIG": str(self._configuration)})


def _run(command: Sequence[str], environment: dict[str, str]) -> str:
    try:
        result = subprocess.run(
            command, env={**os.environ, "LC_ALL": "C", **environment}, capture_output=True,
            text=True, check=False, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StackError(
            f"{command[0]}: {error}",
            hint="it needs a Debian or Ubuntu system with apt",
            code="SM-4605",
        ) from None
    if result.returncode != 0:
        text = (result.stderr or result.stdout).strip()[-500:]
        raise StackError(f"{' '.join(command[:2])} {command[-1]}: {text}", code="SM-4605")
    return result.stdout
