"""What builds the site is pinned, and loads nothing from other hosts."""

from __future__ import annotations

import re

import yaml
from packaging.requirements import Requirement

from tests.unit.docs.documents import DOCS, ROOT


def pins() -> dict[str, str]:
    text = (DOCS / "requirements.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE))


def test_every_requirement_is_pinned_with_a_hash() -> None:
    text = (DOCS / "requirements.txt").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\w)", text.partition("\n\n")[0])
    requirements = [entry for entry in entries if re.match(r"[\w.-]+==", entry)]
    assert len(requirements) > 10
    assert [entry for entry in requirements if "--hash=sha256:" not in entry] == []


def test_the_pins_meet_the_bounds() -> None:
    lines = (DOCS / "requirements.in").read_text(encoding="utf-8").splitlines()
    wanted = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert wanted
    for requirement in wanted:
        assert any(bound.operator == "<" for bound in requirement.specifier)
        assert requirement.specifier.contains(pins()[requirement.name]), "run `make lock`"


def test_the_site_is_strict_about_links_and_asks_no_other_host() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["theme"]["font"] is False
    assert set(settings["validation"].values()) == {"warn"}
    assert "mkdocs build --quiet --strict" in (ROOT / "Makefile").read_text(encoding="utf-8")
