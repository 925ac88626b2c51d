"""Check the project's text files: line ends, trailing blanks, TOML, YAML, JSON, names of tests.

Usage: ``python tests/text_files.py [FILE…]``; without files, all that git tracks or would track.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "docker" / "chart" / "templates"
"""YAML only after Helm rendered them: tests/chart."""
_NAMED = re.compile(r"(?<![\w./-])tests/[\w/]+\.(?:py|md|toml|ya?ml)\b")
"""A test, or what belongs to one, in a text."""
GENERATED = {"requirements.lock", "LICENSE", "idiomorph.min.js"}


def tracked() -> list[Path]:
    """Files that git tracks, and new ones that it does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def faults(path: Path) -> list[str]:
    """What is wrong with a file; empty for a good or a binary one."""
    data = path.read_bytes()
    if b"\0" in data or path.name in GENERATED:
        return []
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return [f"not UTF-8: {error}"]
    found = []
    if "\r\n" in text:
        found.append("CRLF line ends")
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        found.append("must end with exactly one newline")
    found += [
        f"line {n}: trailing blanks"
        for n, line in enumerate(text.split("\n"), 1)
        if line != line.rstrip()
    ]
    found += [
        f"names {name}, which does not exist"
        for name in sorted(set(_NAMED.findall(text)))
        if not (ROOT / name).exists()
    ]
    try:
        if path.suffix == ".toml":
            tomllib.loads(text)
        elif path.suffix in (".yaml", ".yml") and path.parent != TEMPLATES:
            list(yaml.safe_load_all(text))
        elif path.suffix in (".json", ".avsc"):
            json.loads(text)
    except (ValueError, yaml.YAMLError) as error:
        found.append(str(error))
    return found


def main(names: list[str]) -> int:
    """Print the faults; 1 when there is one."""
    paths = [Path(name) for name in names] or tracked()
    count = 0
    for path in paths:
        if path.is_file() and not path.is_symlink():
            for fault in faults(path):
                print(f"{path}: {fault}")
                count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
