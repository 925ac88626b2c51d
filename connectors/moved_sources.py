"""Whether the pipeline file gives a source another address than it had before."""

from __future__ import annotations

import os
from pathlib import Path

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline


class MovedSources:
    """Reads the pipeline file again when it has changed.

    Args:
        path: Of the file.
        pipeline: What it said when the process began.

    Attributes:
        pipeline: What it says since the last move, or since the process began.
    """

    def __init__(self, path: Path, pipeline: Pipeline) -> None:
        self._path, self.pipeline = path, pipeline
        self._seen = self._text()

    def look(self) -> tuple[str, ...]:
        """The sources that were moved meanwhile; none while the file cannot be read."""
        text = self._text()
        if text == self._seen:
            return ()
        try:
            pipeline = parse_pipeline(text, os.environ)
        except ConfigError:
            return ()  # it is being written, or a variable is not set here
        self._seen = text
        if found := moved_between(self.pipeline, pipeline):
            self.pipeline = pipeline
        return found

    def _text(self) -> str:
        try:
            return self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return self._seen


def moved_between(before: Pipeline, after: Pipeline) -> tuple[str, ...]:
    """The sources of both files that are in a higher epoch now, whatever else differs. Pure."""
    epochs = {source.name: source.epoch for source in before.sources}
    return tuple(s.name for s in after.sources if s.epoch > epochs.get(s.name, s.epoch))
