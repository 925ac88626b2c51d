"""Looks up what the pipeline file only refers to: ``env:NAME`` and ``file:PATH``."""

from __future__ import annotations

import os
from pathlib import Path

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.secrets import ENVIRONMENT, reference


def resolved(text: str) -> str:
    """The value that a text refers to, or the text itself if it is no reference.

    It is looked up at each call, so that a new connection uses a password that was changed. Line
    ends at the end of a file do not count.

    Raises:
        ConfigError: There is no such variable, or the file cannot be read.
    """
    found = reference(text)
    if found is None:
        return text
    if found.kind == ENVIRONMENT:
        if found.name not in os.environ:
            raise ConfigError(
                f"environment variable {found.name} is not set",
                hint=f"the pipeline file refers to it: {text}",
                code="SM-5705",
            )
        return os.environ[found.name]
    try:
        return Path(found.name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"file {found.name} cannot be read: {reason}",
            hint=f"the pipeline file refers to it: {text}",
            code="SM-5705",
        ) from None
