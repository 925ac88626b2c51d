"""What must agree before a release is made. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import yaml

_HEADING = re.compile(r"^## \[(?P<name>[^\]]+)\](?P<rest>.*)$", re.MULTILINE)
_VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
UNRELEASED = "Unreleased"


@dataclass(frozen=True, slots=True)
class Section:
    """A release in the changelog.

    Attributes:
        name: Its version, or ``Unreleased``.
        dated: What stands behind the name: ``- 2026-11-25``.
        text: What the release changed.
    """

    name: str
    dated: str
    text: str


def sections(changelog: str) -> list[Section]:
    """The releases of a changelog, newest first."""
    found = list(_HEADING.finditer(changelog))
    ends = [*(match.start() for match in found[1:]), len(changelog)][: len(found)]
    return [
        Section(match["name"], match["rest"].strip(" -"), changelog[match.end() : end].strip())
        for match, end in zip(found, ends, strict=True)
    ]


def version_faults(version: str, changelog: str, tag: str = "") -> list[str]:
    """Where version, changelog and tag do not agree; empty where they do.

    Args:
        version: Of pyproject.toml.
        changelog: CHANGELOG.md as text.
        tag: The tag of the release; "" if none is made now. Between two releases the changelog
            has a part Unreleased, and the version is that of the last release.
    """
    faults = [] if _VERSION.fullmatch(version) else [f"{version!r} is no version like 1.2.3"]
    found = sections(changelog)
    released = [section for section in found if section.name != UNRELEASED]
    if UNRELEASED in [section.name for section in found[1:]]:
        faults.append("CHANGELOG.md: Unreleased must be the first part")
    newest = released[0].name if released else "none"
    if newest != version:
        faults.append(f"pyproject.toml has version {version}, CHANGELOG.md's newest is {newest}")
    days: list[date] = []
    for section in released:
        try:
            days.append(date.fromisoformat(section.dated))
        except ValueError:
            faults.append(f"CHANGELOG.md: {section.name} has no date like 2026-11-25")
    if days != sorted(days, reverse=True):
        faults.append("CHANGELOG.md: the newest release must stand first")
    if not tag:
        return faults
    if tag != f"v{version}":
        faults.append(f"the tag is {tag}, version {version} needs v{version}")
    if any(section.name == UNRELEASED and section.text for section in found):
        faults.append("CHANGELOG.md: a part is Unreleased; give it the version and today's date")
    return faults


def chart_faults(version: str, chart: str) -> list[str]:
    """What in the Helm chart does not fit a version.

    Its ``appVersion`` is the tag of the images that it runs by default, so a chart of an earlier
    version would run the earlier images.

    Args:
        version: Of ``pyproject.toml``.
        chart: Text of ``Chart.yaml``.
    """
    told = yaml.safe_load(chart)
    return [
        f"docker/chart/Chart.yaml: {name} is {told.get(name)}, pyproject.toml has {version}"
        for name in ("version", "appVersion")
        if str(told.get(name)) != version
    ]


def tag_of(asked: str, at_head: Sequence[str]) -> str:
    """The release's tag: the one that was asked for, or else a version's tag that HEAD has."""
    return asked or next((tag for tag in sorted(at_head) if re.match(r"v\d", tag)), "")


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """The files that two wheels do not have alike, sorted.

    Args:
        one, other: Name of each file → its checksum.
    """
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


PACKAGES = {
    "": ("schemas",),
    "agents": ("agents",),
    "connect": ("connectors",),
    "spark": ("spark_sink",),
    "cli": ("cli.main", "cli.checks", "cli.views"),
    "lineage": ("spark_sink.lineage",),
    "local": ("agents", "schemas", "connectors", "spark_sink", "local", "cli"),
}
"""Extra ("" for none) → the rooms whose modules can be loaded with it."""
NEED_MORE = {
    "shardmerge.connectors.access.aiokafka_arguments": "agents",
    "shardmerge.connectors.access.lineage_client": "lineage",
    "shardmerge.spark_sink.lineage.": "lineage",
}
"""Beginning of a module's name → the extra that it needs, whatever room it is in."""


def without_command(extra: str) -> bool:
    """Whether the command ``shardmerge`` lacks its packages with an extra."""
    return extra not in ("cli", "local")


def loading(extra: str) -> str:
    """A program that loads every module of the rooms of an extra, and says how many these are.

    It ends with 1, and names each module that cannot be loaded, if there is one.
    """
    left = tuple(name for name, needed in NEED_MORE.items() if extra not in (needed, "local"))
    return _LOADING.format(rooms=PACKAGES[extra], left=left)


_LOADING = """
import importlib, pkgutil, sys
count, faults = 0, []
for room in {rooms!r}:
    package = importlib.import_module("shardmerge." + room)
    names = [package.__name__]
    if hasattr(package, "__path__"):
        names += [m.name for m in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
    for name in names:
        # Who runs a module as a program does not load it.
        if name.startswith({left!r}) or name.endswith("__main__"):
            continue
        count += 1
        try:
            importlib.import_module(name)
        except Exception as error:
            faults.append(f"{{name}}: {{type(error).__name__}}: {{error}}")
print(*(faults or [count]), sep="\\n")
sys.exit(bool(faults))
"""
