"""The example's pipeline with users who may give commands from the pages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.web import Web, parse_web
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.example_pages import ExampleLine, pipeline
from tests.served_pages import ExamplePresent

OLGA = "olga's-token-0123456789abcdef"
IVAN = "ivan's-token-0123456789abcdef"


def with_tokens(folder: Path, *, origin: str = "") -> Pipeline:
    """Olga and Ivan have tokens, in files of the folder."""
    tokens = {}
    for user, token in (("olga", OLGA), ("ivan", IVAN)):
        (folder / user).write_text(f"{token}\n", encoding="utf-8")
        tokens[user] = f"file:{folder / user}"
    web = parse_web({"commands": "token", "tokens": tokens, "origin": origin})
    return replace(pipeline(), web=web)


def behind_proxy(origin: str, *, proxy: str = "127.0.0.1", groups: str = "") -> Pipeline:
    """A proxy names users in ``X-Forwarded-User``, and their groups in ``X-Groups``."""
    entry: dict[str, object] = {"commands": "proxy", "proxies": [proxy], "origin": origin}
    if groups:
        entry |= {"groups_header": "X-Groups", "groups": [groups]}
    web: Web = parse_web(entry)
    return replace(pipeline(), web=web)


class GivenCommands:
    """Takes commands as the commands topic does, and lets the example's agents obey them."""

    def __init__(self, line: ExampleLine, present: ExamplePresent, *, answers: bool = True) -> None:
        self._line = line
        self._present = present
        self._answers = answers
        self.commands: list[OperatorCommand] = []

    def __call__(self, said: OperatorCommand) -> ChangeId:
        """Take a command."""
        line = self._line
        self.commands.append(said)
        place = ChangeId(said.id.source, 2**61 + 100 + len(self.commands))
        line.view.apply(replace(said, id=place))
        if self._answers:
            self.answer()
        return place

    def answer(self) -> None:
        """Let the agents answer the last command."""
        said = self.commands[-1]
        place = ChangeId(said.id.source, 2**61 + 100 + len(self.commands))
        self._line.send(replace(said, id=place))
        self._present.take(self._line.state)
