"""How the lines of a process's log look: for people, or as JSON.

A process calls ``set_up`` once; it sets where lines go and how they look. Our own events come from
``event_log``. A record of a library (Faust, aiokafka, py4j) gets the same form, as the event
``library_logged``. In a process that was not set up, such as a Python worker of Spark, Python's own
handler prints warnings and errors with the same fields.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import sys
import traceback
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from shardmerge.schemas.model.errors import ConfigError, ShardMergeError

PLAIN, JSON = "plain", "json"
FORMS = (PLAIN, JSON)
LOG_FORMAT = "SHARDMERGE_LOG_FORMAT"
"""The environment variable with the form of the lines."""

STANDARD = ("time", "level", "event", "logger", "process")
"""Keys of every JSON line. No field has one of these names."""

_QUIET = ("aiokafka", "faust", "mode", "kafka")
"""Libraries of which only records from WARNING on are logged, unless the level is DEBUG."""
_ALWAYS_QUIET = ("py4j", "urllib3")
"""Libraries of which only records from WARNING on are logged."""
LIBRARIES = (*_QUIET, *_ALWAYS_QUIET)


def error_fields(name: str, error: BaseException) -> dict[str, Any]:
    """An error as log fields: ``name``, ``name_type``, and its ``hint`` and ``code``, if any.

    Args:
        name: Name of the field with the message, such as ``error``; the type's field is
            ``error_type`` then.
        error: The error.
    """
    fields: dict[str, Any] = {name: str(error), f"{name}_type": type(error).__name__}
    if isinstance(error, ShardMergeError):
        fields[name] = error.message
        fields |= {"hint": error.hint} if error.hint else {}
        fields["code"] = error.code
    return fields


class EventFormatter(logging.Formatter):
    """Makes a line of a log record.

    Args:
        process: Name of the process in every line, such as ``sink``.
        form: ``plain`` or ``json``.
    """

    def __init__(self, process: str, form: str = PLAIN) -> None:
        super().__init__()
        self._process, self._form = process, form

    def format(self, record: logging.LogRecord) -> str:
        """The line. In the plain form an exception's traceback follows in lines of its own."""
        when = dt.datetime.fromtimestamp(record.created, dt.UTC)
        time = when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        event = getattr(record, "event", None)
        if self._form == JSON:
            return self._json(record, time, event)
        text = record.getMessage()
        text = text if event else f"{record.name}: {text}"
        line = f"{time} {record.levelname} {self._process} {text}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line

    def _json(self, record: logging.LogRecord, time: str, event: str | None) -> str:
        fields = getattr(record, "fields", {}) if event else {"message": record.getMessage()}
        line = {
            "time": time,
            "level": record.levelname.lower(),
            "event": event or "library_logged",
            "logger": record.name,
            "process": self._process,
            **fields,
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = _exception(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False, default=str)


def _exception(error: BaseException) -> dict[str, Any]:
    """An exception as JSON: type, message, stack, and the code of an error of ours."""
    shown = error_fields("message", error)
    return {
        "type": shown.pop("message_type"),
        **shown,
        "stack": "".join(traceback.format_exception(error)),
    }


class _Stderr(logging.Handler):
    """Writes to what ``sys.stderr`` is at the moment of the record."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record's line."""
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


def set_up(process: str, level: str = "INFO", form: str = PLAIN) -> None:
    """Let this process log to stderr; a second call replaces what the first one set.

    Args:
        process: Name of the process in every line.
        level: The lowest level that is logged: ``DEBUG``, ``INFO``, ``WARNING`` or ``ERROR``.
        form: ``plain`` or ``json``.
    """
    handler = _Stderr()
    handler.setFormatter(EventFormatter(process, form))
    root = logging.getLogger()
    for old in [each for each in root.handlers if isinstance(each, _Stderr)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    logging.captureWarnings(True)
    for name in LIBRARIES:
        loud = name in _QUIET and level == "DEBUG"
        logging.getLogger(name).setLevel("DEBUG" if loud else logging.WARNING)


def event_in(line: str) -> tuple[dt.datetime, str] | None:
    """Time and event of a line that a process wrote, in either form; None for any other line."""
    try:
        if line.startswith("{"):
            said = json.loads(line)
            return dt.datetime.fromisoformat(said["time"]), said["event"]
        time, _, _, event, *_ = line.split(" ", 4)
        return dt.datetime.fromisoformat(time), event.rstrip()
    except (ValueError, KeyError, TypeError):
        return None


def form_of(given: str | None, env: Mapping[str, str]) -> str:
    """The form of the lines: as given on the command line, or by ``SHARDMERGE_LOG_FORMAT``.

    Raises:
        ConfigError: It is neither ``plain`` nor ``json``.
    """
    form = given or env.get(LOG_FORMAT) or PLAIN
    if form not in FORMS:
        origin = "--log-format" if given else LOG_FORMAT
        code = "SM-5601" if given else "SM-5501"
        raise ConfigError(f"{origin} is {form!r}", hint="give plain or json", code=code)
    return form


def add_log_option(parser: ArgumentParser) -> None:
    """Let a process take ``--log-format``; ``form_of`` reads it."""
    parser.add_argument(
        "--log-format",
        choices=FORMS,
        help=f"form of the log lines: plain (default) or json ({LOG_FORMAT})",
    )
