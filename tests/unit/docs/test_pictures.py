"""Every picture is shown somewhere, and is small enough to be kept."""

from __future__ import annotations

import pytest

from tests.unit.docs.documents import DOCS, DOCUMENTS

PICTURES = sorted(path for path in (DOCS / "pictures").iterdir() if path.suffix in {".png", ".svg"})
MOST_BYTES = 150_000


@pytest.mark.parametrize("name", [path.name for path in PICTURES])
def test_a_picture_is_shown_and_small(name: str) -> None:
    assert (DOCS / "pictures" / name).stat().st_size <= MOST_BYTES
    shown = [d for d in DOCUMENTS if f"pictures/{name})" in d.read_text(encoding="utf-8")]
    assert shown, "no document shows it"
