from __future__ import annotations

import re
import tomllib
from hashlib import sha256
from importlib import resources

import pytest

from shardmerge.agents.pages.asset_files import NAMES, assets

FOLDER = resources.files("shardmerge.agents.pages") / "assets"
VENDORED = tomllib.loads((FOLDER / "vendored.toml").read_text(encoding="utf-8"))["file"]


@pytest.mark.parametrize("entry", VENDORED, ids=lambda entry: entry["name"])
def test_a_vendored_file_is_what_was_published_and_its_licence_is_beside_it(entry):
    assert sha256((FOLDER / entry["name"]).read_bytes()).hexdigest() == entry["sha256"]
    assert (FOLDER / entry["licence_file"]).read_text(encoding="utf-8").strip()
    assert entry["licence_file"] in NAMES


def test_every_file_of_the_folder_is_served_or_says_what_is():
    there = {path.name for path in FOLDER.iterdir()} - {"py.typed", "vendored.toml"}
    assert there == set(NAMES)


def test_our_own_files_load_nothing_from_elsewhere():
    for name in ("pages.css", "pages.js"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert re.findall(r"https?:|url\(|@import", text) == []


def test_a_version_is_that_of_the_content():
    found = assets()["pages.css"]
    assert found.version == sha256(found.content).hexdigest()[:12]
    assert found.content_type == "text/css"
