"""The distribution holds every folder of the tree, and nothing but ``shardmerge``."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
TOP = ("agents", "schemas", "connectors", "spark_sink", "local", "cli")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PROJECT["tool"]["setuptools"]


def folders() -> set[str]:
    """Every folder of the packages, as a package name."""
    found = set()
    for top in TOP:
        for place in (ROOT / top, *(p for p in (ROOT / top).rglob("*") if p.is_dir())):
            parts = place.relative_to(ROOT).parts
            if not any(p.startswith((".", "__")) for p in parts):
                found.add(".".join(("shardmerge", *parts)))
    return found


def test_every_folder_is_a_listed_package() -> None:
    assert folders() == set(SETUPTOOLS["packages"])


def test_every_package_is_mapped_to_its_folder() -> None:
    expected = {name: "/".join(name.split(".")[1:]) for name in SETUPTOOLS["packages"]}
    assert SETUPTOOLS["package-dir"] == expected


def test_every_package_is_marked_as_typed() -> None:
    missing = [
        folder
        for folder in SETUPTOOLS["package-dir"].values()
        if not (ROOT / folder / "py.typed").exists()
    ]
    assert missing == []


def test_every_data_file_is_of_a_kind_that_is_packed() -> None:
    kinds = tuple(pattern.lstrip("*") for pattern in SETUPTOOLS["package-data"]["*"])
    left_out = [
        path.relative_to(ROOT).as_posix()
        for top in TOP
        for path in (ROOT / top).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc") and not path.name.endswith(kinds)
    ]
    assert left_out == []


def test_the_docker_folder_is_no_package() -> None:
    """With Python files it would shadow the Docker SDK's ``docker``."""
    assert list((ROOT / "docker").rglob("*.py")) == []


@pytest.mark.parametrize("top", TOP)
def test_a_package_is_found_under_its_installed_name(top: str) -> None:
    assert importlib.util.find_spec(f"shardmerge.{top}") is not None


def test_shardmerge_is_a_namespace_with_nothing_of_its_own() -> None:
    spec = importlib.util.find_spec("shardmerge")
    assert spec is not None
    assert spec.origin is None


def requirements() -> list[Requirement]:
    project = PROJECT["project"]
    texts = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        texts += extra
    for group in PROJECT["dependency-groups"].values():
        texts += [entry for entry in group if isinstance(entry, str)]
    parsed = [Requirement(text) for text in texts]
    return [r for r in parsed if r.name != PROJECT["project"]["name"]]


def locked() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = (re.match(r"([A-Za-z0-9._-]+)==([^\s;\\]+)", line) for line in lines)
    return {canonicalize_name(pin.group(1)): pin.group(2) for pin in pins if pin}


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_the_lock_meets_the_projects_bounds(requirement: Requirement) -> None:
    version = locked().get(canonicalize_name(requirement.name))
    assert version is not None, "run `make lock`"
    assert requirement.specifier.contains(version), "run `make lock`"


def test_every_upper_bound_is_written() -> None:
    """A dependency's next major version is tested before it is allowed."""
    unbounded = [str(r) for r in requirements() if not any(s.operator == "<" for s in r.specifier)]
    assert unbounded == []


def installed_by(extra: str) -> set[str]:
    """The distributions that an extra of the project installs, with all that they need."""
    found: set[str] = set()
    project = PROJECT["project"]
    optional = project["optional-dependencies"]
    waiting = [Requirement(text) for text in (*project["dependencies"], *optional[extra])]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name == project["name"]:
            waiting += [Requirement(t) for e in requirement.extras for t in optional[e]]
        elif name not in found and (of := metadata.distribution(name)):
            found.add(name)
            needs = (Requirement(text) for text in of.requires or ())
            # An extra of a requirement is taken as asked for: that allows more, never less.
            extras = requirement.extras or {""}
            waiting += [
                need for need in needs
                if need.marker is None or any(need.marker.evaluate({"extra": e}) for e in extras)
            ]  # fmt: skip
    return found


@cache
def without(extra: str) -> list[str]:
    """The modules that are here and that an extra of the project does not install."""
    allowed = {*installed_by(extra), "shardmerge"}
    return [
        module
        for module, names in metadata.packages_distributions().items()
        if not {canonicalize_name(name) for name in names} & allowed
    ]


WITHOUT_OTHERS = """
import sys
from importlib.abc import MetaPathFinder
class Refused(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in set({refused!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.split(".")[0])
sys.meta_path.insert(0, Refused())
from shardmerge.cli.main import main
main({words!r})
"""


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--help"], 0, "explain"),
        (["connect", "--help"], 0, "restart"),
        (["sink", "--pipeline", "FILE"], 2, "pip install 'shardmerge[spark]'"),
        (["agents", "--pipeline", "FILE"], 2, "pip install 'shardmerge[agents]'"),
        (["status", "--pipeline", "no-such-file"], 2, "no-such-file"),
    ],
)
def test_the_command_needs_no_more_than_its_extra(words: list[str], code: int, told: str) -> None:
    refused = without("cli")
    assert {"pyspark", "faust", "msgspec"} <= set(refused)
    program = WITHOUT_OTHERS.format(refused=refused, words=words)
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, told in ended.stdout + ended.stderr) == (code, True), ended.stderr
