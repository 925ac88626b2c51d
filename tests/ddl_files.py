"""Files of DDL: ``;;`` ends a statement, ``-- @group name flags`` names those that follow.

Flags: ``ansi`` (sql_mode ANSI_QUOTES), ``maria`` (MariaDB only), ``ignore`` (concerns no
schema), ``noexec`` (not executable on a plain server).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shardmerge.schemas.ddl.grammar import ServerContext

ROOT = Path(__file__).resolve().parent.parent
OWN = ROOT / "tests" / "golden" / "parse" / "statements.sql"
_GROUP = re.compile(r"\s*-- @group (\S+)([^\n]*)\n")


@dataclass(frozen=True, slots=True)
class Written:
    """One statement of a file."""

    group: str
    flags: frozenset[str]
    sql: str

    def context(self, base: ServerContext) -> ServerContext:
        """The server that the statement is for: ``base`` unless a flag says otherwise."""
        modes = frozenset({"ANSI_QUOTES"}) if "ansi" in self.flags else base.sql_mode
        flavour, version = base.flavour, base.version
        if "maria" in self.flags and not base.is_mariadb:
            flavour, version = "mariadb", (10, 11)
        return ServerContext(
            flavour, version, modes, base.charset, base.collation, base.default_database
        )


def read(path: Path) -> Iterator[Written]:
    """The statements of a file, in order."""
    group, flags = "", frozenset[str]()
    for piece in path.read_text(encoding="utf-8").split(";;"):
        text = piece.strip("\n")
        while (head := _GROUP.match(text)) is not None:
            group, flags = head[1], frozenset(head[2].split())
            text = text[head.end() :]
        if text.strip():
            yield Written(group, flags, text)


def cases() -> Path | None:
    """The folder of shared cases: ``SHARDMERGE_CASES``, or beside the checkout; None without."""
    named = os.environ.get("SHARDMERGE_CASES")
    folder = Path(named) if named else ROOT.parent / "shared" / "cases"
    return folder if folder.is_dir() else None


def corpus() -> tuple[Path, ...]:
    """Every file of statements there is; the project's own is always among them."""
    folder = cases()
    shared = (folder / "ddl_fixture.sql", folder / "ddl_corpus.sql") if folder else ()
    return (OWN, *(path for path in shared if path.exists()))
