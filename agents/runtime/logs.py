"""How the worker logs: one line per event, its name first, then the facts as ``name=value``."""

from __future__ import annotations

import logging
from typing import Any

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Attributes of every log record; the others are the facts given as ``extra``."""

_QUIET = ("aiokafka", "faust", "mode", "kafka")


class FactsFormatter(logging.Formatter):
    """Appends what was passed as ``extra`` to the line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        facts = " ".join(
            f"{name}={value!r}"
            for name, value in sorted(vars(record).items())
            if name not in _STANDARD and not name.startswith("_")
        )
        line = super().format(record)
        return f"{line} {facts}" if facts and record.name.startswith("shardmerge.") else line


def logging_config(level: str) -> dict[str, Any]:
    """A ``dictConfig`` for stderr; libraries speak from WARNING on."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "facts": {
                "()": FactsFormatter,
                "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
            }
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "facts",
                "stream": "ext://sys.stderr",
            }
        },
        "loggers": {name: {"level": "WARNING" if level == "INFO" else level} for name in _QUIET},
        "root": {"level": level, "handlers": ["stderr"]},
    }
