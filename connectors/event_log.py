"""How every process logs: one event at a time, with fields.

``log = logger(__name__)`` gives a module its logger, ``log.info("shard_emptied", shard=shard)``
logs. An event's name is a literal ``noun_verb``; everything that varies is a field. The meaning of
each event and of each field is in ``docs/log_events.toml``, from which the reference page is made.
``log_lines`` makes lines of them.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping
from typing import Any, cast

import structlog
from structlog.typing import EventDict

from .log_lines import error_fields

_SECRET = re.compile(r"password|secret|token|credential", re.IGNORECASE)
_HIDDEN = "***"
_OF_STRUCTLOG = ("exc_info", "stack_info", "stacklevel")
_logfmt = structlog.processors.LogfmtRenderer(bool_as_flag=False)


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """The logger of a module; ``name`` is the module's, which JSON lines show."""
    if name == "__main__" and (spec := sys.modules[name].__spec__) is not None:
        name = spec.name  # of the module that ``python -m`` runs
    wrapped = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[structlog.stdlib.filter_by_level, _plain_fields, _to_record],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return cast("structlog.stdlib.BoundLogger", wrapped)


def _plain_fields(_: Any, __: str, event: EventDict) -> EventDict:
    """Values as JSON has them; an error of ours as its message, kind and hint; no secrets."""
    fields: dict[str, Any] = {}
    for name, value in event.items():
        if name in _OF_STRUCTLOG:
            fields[name] = value
        elif _SECRET.search(name):
            fields[name] = _HIDDEN
        elif isinstance(value, BaseException):
            fields |= error_fields(name, value)
        else:
            fields[name] = _plain(value)
    return fields


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | float():
            return value
        case Mapping():
            return {
                str(k): _HIDDEN if _SECRET.search(str(k)) else _plain(v) for k, v in value.items()
            }
        case list() | tuple():
            return [_plain(each) for each in value]
        case set() | frozenset():
            return sorted(str(each) for each in value)
        case _:
            return str(value)


def _to_record(_: Any, __: str, event: EventDict) -> tuple[tuple[str], dict[str, Any]]:
    """The arguments of ``logging``: the line's text for any handler, name and fields for ours."""
    options = {name: event.pop(name) for name in _OF_STRUCTLOG if name in event}
    name = str(event.pop("event"))
    text = f"{name} {_text_of(event)}" if event else name
    return (text,), {**options, "extra": {"event": name, "fields": dict(event)}}


def _text_of(fields: Mapping[str, Any]) -> str:
    """Fields as ``name=value``, with quotes where a value has blanks."""
    texts = {
        name: ",".join(map(str, value))
        if isinstance(value, list)
        else json.dumps(value, ensure_ascii=False)
        if isinstance(value, dict)
        else value
        for name, value in fields.items()
    }
    return _logfmt(None, "", texts)
