"""Whether the pipeline file gives a source another address than it had when a process began."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline, Source


class MovedSources:
    """Reads the pipeline file again when it has changed.

    Args:
        path: Of the file.
        pipeline: What it said when the process began.
    """

    def __init__(self, path: Path, pipeline: Pipeline) -> None:
        self._path, self._pipeline = path, pipeline
        self._seen = self._text()

    def look(self) -> tuple[str, ...]:
        """The sources that were moved meanwhile; none while the file cannot be read."""
        text = self._text()
        if text == self._seen:
            return ()
        try:
            found = moved_between(self._pipeline, parse_pipeline(text, os.environ))
        except ConfigError:
            return ()  # it is being written, or a variable is not set here
        self._seen = text
        return found

    def _text(self) -> str:
        try:
            return self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return self._seen


def moved_between(before: Pipeline, after: Pipeline) -> tuple[str, ...]:
    """The sources that are in a higher epoch now, if nothing else differs in the two files. Pure.

    Other changes concern agents and sink, too: whoever makes them starts all parts again.
    """
    if replace(before, sources=()) != replace(after, sources=()):
        return ()
    pairs = list(zip(before.sources, after.sources, strict=False))
    if len(before.sources) != len(after.sources) or any(_rest(a) != _rest(b) for a, b in pairs):
        return ()
    return tuple(old.name for old, new in pairs if new.epoch > old.epoch)


def _rest(source: Source) -> Source:
    return replace(source, host="", port=0, user="", password="", epoch=0)
