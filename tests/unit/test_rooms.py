"""A room stays one that a stranger finds his way in: few modules, none too long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.test_packaging import ROOT, TOP, folders

MODULES_A_ROOM, LINES_A_MODULE = 16, 400
ROOMS = sorted("/".join(name.split(".")[1:]) for name in folders())


def modules(room: str) -> list[Path]:
    return sorted(path for path in (ROOT / room).glob("*.py") if path.name != "__init__.py")


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_few_modules_and_says_what_it_is_for(room: str) -> None:
    found = modules(room)
    assert len(found) <= MODULES_A_ROOM
    if found:
        text = (ROOT / room / "__init__.py").read_text(encoding="utf-8")
        assert text.startswith('"""')


@pytest.mark.parametrize("top", TOP)
def test_no_module_is_too_long(top: str) -> None:
    long = {
        path.relative_to(ROOT).as_posix(): count
        for path in sorted((ROOT / top).rglob("*.py"))
        if (count := lines(path)) > LINES_A_MODULE
    }
    assert long == {}
