"""Every statement that the cases hold is parsed, or known as one that concerns no schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardmerge.schemas.ddl.changes import Irrelevant
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import UnparsableDDL
from tests.ddl_files import corpus, read

FLOOR = 1.0
"""Share of statements that must be understood; it only ever rises."""


@pytest.mark.parametrize("version", [(5, 7), (8, 0), (8, 4), (9, 7)])
@pytest.mark.parametrize("path", corpus(), ids=lambda path: path.name)
def test_the_corpus_is_understood(path: Path, version: tuple[int, int]) -> None:
    base = ServerContext(version=version, default_database="c")
    parsed = ignored = 0
    failures: list[str] = []
    for written in read(path):
        try:
            statement = parse(written.sql, written.context(base))
        except UnparsableDDL as error:
            failures.append(f"{written.group}: {error.message}\n{error.caret()}")
        else:
            ignored += isinstance(statement, Irrelevant)
            parsed += not isinstance(statement, Irrelevant)
            if "ignore" in written.flags:
                assert isinstance(statement, Irrelevant), written.sql
    total = parsed + ignored + len(failures)
    print(f"{path.name}: {parsed} parsed, {ignored} ignored, {len(failures)} failed")
    assert (total - len(failures)) / total >= FLOOR, "\n".join(failures)
