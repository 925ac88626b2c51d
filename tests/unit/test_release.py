"""What must agree before a release is made."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.release.rules import (
    PACKAGES,
    Section,
    chart_faults,
    differing,
    loading,
    sections,
    tag_of,
    version_faults,
    without_command,
)

ROOT = Path(__file__).resolve().parents[2]
BETWEEN = """# Changelog

## [Unreleased]

### Added

- More.

## [0.2.0] - 2026-12-01

- New.

## [0.1.0] - 2026-11-25

The first release.
"""
READY = BETWEEN.replace("## [Unreleased]\n\n### Added\n\n- More.\n\n", "")


def test_a_changelog_is_read_by_release() -> None:
    assert [(s.name, s.dated) for s in sections(BETWEEN)] == [
        ("Unreleased", ""), ("0.2.0", "2026-12-01"), ("0.1.0", "2026-11-25"),
    ]  # fmt: skip
    assert sections(BETWEEN)[-1] == Section("0.1.0", "2026-11-25", "The first release.")
    assert sections("") == []


def test_between_releases_the_version_is_that_of_the_last_one() -> None:
    assert version_faults("0.2.0", BETWEEN) == []
    [fault] = version_faults("0.3.0", BETWEEN)
    assert "CHANGELOG.md's newest is 0.2.0" in fault


def test_a_release_has_its_tag_and_nothing_unreleased() -> None:
    assert version_faults("0.2.0", READY, "v0.2.0") == []
    empty = READY.replace("## [0.2.0]", "## [Unreleased]\n\n## [0.2.0]")
    assert version_faults("0.2.0", empty, "v0.2.0") == []
    [fault] = version_faults("0.2.0", READY, "v0.1.0")
    assert fault == "the tag is v0.1.0, version 0.2.0 needs v0.2.0"
    [fault] = version_faults("0.2.0", BETWEEN, "v0.2.0")
    assert "Unreleased" in fault


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("2026-12-01", "soon", "0.2.0 has no date"),
        ("2026-12-01", "2026-11-01", "newest release must stand first"),
        ("## [0.1.0]", "## [Unreleased]", "Unreleased must be the first"),
    ],
)
def test_a_changelog_is_in_order(before: str, after: str, fault: str) -> None:
    [found] = version_faults("0.2.0", BETWEEN.replace(before, after))
    assert fault in found


def test_a_version_has_three_numbers() -> None:
    assert any("no version" in fault for fault in version_faults("0.2", BETWEEN))
    text = BETWEEN.replace("[0.2.0]", "[0.2.0rc1]")
    assert version_faults("0.2.0rc1", text) == []


def test_the_tag_is_the_one_that_is_asked_for_or_heads() -> None:
    assert tag_of("", ["nightly", "v0.2.0"]) == "v0.2.0"
    assert tag_of("v0.3.0", ["v0.2.0"]) == "v0.3.0"
    assert tag_of("", ["nightly"]) == ""


def test_wheels_are_compared_file_by_file() -> None:
    assert differing({"a": "1", "b": "2"}, {"a": "1", "b": "2"}) == []
    assert differing({"a": "1", "b": "2"}, {"b": "3", "c": "4"}) == ["a", "b", "c"]


def test_the_chart_runs_the_images_of_the_version() -> None:
    assert chart_faults("0.2.0", "version: 0.2.0\nappVersion: 0.2.0\n") == []
    assert chart_faults("0.2.0", "version: 0.2.0\nappVersion: 0.1.0\n") == [
        "docker/chart/Chart.yaml: appVersion is 0.1.0, pyproject.toml has 0.2.0"
    ]
    [lacks] = chart_faults("0.2.0", "appVersion: 0.2.0\n")
    assert "version is None" in lacks


def test_the_tree_agrees_with_itself() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version_faults(version, (ROOT / "CHANGELOG.md").read_text()) == []
    assert chart_faults(version, (ROOT / "docker/chart/Chart.yaml").read_text()) == []


def test_every_extra_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert PACKAGES.keys() == {"", *project["optional-dependencies"]}
    assert [extra for extra in PACKAGES if not without_command(extra)] == ["cli", "local"]


def test_the_rooms_of_an_extra_can_be_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", loading("lineage")], capture_output=True, text=True, check=True
    )
    rooms = ROOT / "spark_sink" / "lineage"
    assert int(done.stdout) == len(list(rooms.glob("*.py")))
