"""The lines of the log, in both forms."""

from __future__ import annotations

import json
import logging
import warnings
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

import pytest

from shardmerge.connectors.event_log import logger
from shardmerge.connectors.log_lines import (
    STANDARD,
    EventFormatter,
    add_log_option,
    event_in,
    form_of,
    set_up,
)
from shardmerge.schemas.model.errors import ConfigError, StackError, TargetError
from shardmerge.schemas.model.names import ShardId

SHARD = ShardId("s1", "app", "t_1")
log = logger("shardmerge.x")


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_plain_line_has_time_level_process_event_and_fields(
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up("sink")
    log.error("shard_held", shard=SHARD, offset=3, reason='a "b"\nc', tables=["d.t", "d.u"])
    log.info("sink_ended")
    held, ended = capsys.readouterr().err.splitlines()
    time, _, rest = held.partition(" ")
    assert abs((datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()) < 60
    assert time.endswith("Z")
    assert rest == (
        r'ERROR sink shard_held shard=s1/app.t_1 offset=3 reason="a \"b\"\nc" tables=d.t,d.u'
    )
    assert ended.endswith(" INFO sink sink_ended")


def test_a_json_line_has_the_same_with_values(capsys: pytest.CaptureFixture[str]) -> None:
    set_up("sink", form="json")
    log.error("shard_held", shard=SHARD, offset=3, seconds=0.5, shards=(SHARD,), at={"pos": 4})
    [line] = lines(capsys)
    assert datetime.fromisoformat(line.pop("time")).tzinfo == UTC
    assert line == {
        "level": "error",
        "event": "shard_held",
        "logger": "shardmerge.x",
        "process": "sink",
        "shard": "s1/app.t_1",
        "offset": 3,
        "seconds": 0.5,
        "shards": ["s1/app.t_1"],
        "at": {"pos": 4},
    }
    assert tuple(line)[:4] == STANDARD[1:]


def test_an_error_is_logged_as_its_parts(capsys: pytest.CaptureFixture[str]) -> None:
    set_up("sink", form="json")
    error = TargetError("the target refused", hint="look")
    log.warning("step_failed", error=error)
    error.code = "SM-1203"
    log.warning("step_failed", error=error)
    log.warning("step_failed", error=OSError(5, "no disk"))
    first, second, third = lines(capsys)
    shown = {"error": "the target refused", "error_type": "TargetError", "hint": "look"}
    assert shown.items() <= first.items()
    assert second["code"] == "SM-1203"
    assert third["error"] == "[Errno 5] no disk"
    assert "hint" not in third


@pytest.mark.parametrize("form", ["plain", "json"])
def test_an_exception_comes_with_its_stack(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    set_up("watchdog", form=form)
    try:
        raise StackError("Connect is away", hint="wait", code="SM-4304")
    except StackError:
        log.exception("watch_broken", watched="rereads")
    text = capsys.readouterr().err
    if form == "plain":
        first, *others = text.splitlines()
        assert first.endswith(" ERROR watchdog watch_broken watched=rereads")
        assert others[0] == "Traceback (most recent call last):"
        assert others[-1].endswith("StackError: SM-4304: Connect is away (wait)")
        return
    said = json.loads(text)["exception"]
    assert (said["type"], said["message"], said["hint"]) == (
        "StackError",
        "Connect is away",
        "wait",
    )
    assert said["stack"].startswith("Traceback (most recent call last):")


def test_libraries_come_out_in_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    set_up("agents", form="json")
    logging.getLogger("aiokafka.conn").warning("lost %s", "broker 1")
    logging.getLogger("aiokafka.conn").info("not shown")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("soon gone", DeprecationWarning, stacklevel=1)
    lost, gone = lines(capsys)
    assert (lost["event"], lost["logger"], lost["message"]) == (
        "library_logged",
        "aiokafka.conn",
        "lost broker 1",
    )
    assert gone["event"] == "library_logged"
    assert "soon gone" in gone["message"]
    set_up("agents")
    logging.getLogger("aiokafka.conn").warning("lost %s", "broker 1")
    assert capsys.readouterr().err.endswith(" WARNING agents aiokafka.conn: lost broker 1\n")


def test_the_level_counts_and_libraries_are_loud_only_at_debug(
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up("sink", "WARNING")
    log.info("sink_ended")
    assert capsys.readouterr().err == ""
    set_up("sink", "DEBUG")
    log.debug("connect_retried")
    logging.getLogger("aiokafka").debug("a")
    logging.getLogger("py4j").info("b")
    assert len(capsys.readouterr().err.splitlines()) == 2


@pytest.mark.parametrize("form", ["plain", "json"])
def test_secrets_are_hidden(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    set_up("cli", form=form)
    log.warning("a_b", password="canary-1", config={"database.password": "canary-2", "user": "u"})
    text = capsys.readouterr().err
    assert "canary" not in text
    assert text.count("***") == 2


def test_a_process_that_is_not_set_up_prints_the_fields_as_well(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log.warning("rows_overwritten", shard=SHARD, rows=2)
    [record] = caplog.records
    assert record.getMessage() == "rows_overwritten shard=s1/app.t_1 rows=2"


@pytest.mark.parametrize("form", ["plain", "json"])
def test_a_line_is_read_back(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    set_up("sink", form=form)
    log.info("sink_started", pipeline="p")
    log.info("sink_ended")
    read = [event_in(line + "\n") for line in capsys.readouterr().err.splitlines()]
    assert [found and found[1] for found in read] == ["sink_started", "sink_ended"]
    assert read[0]
    assert read[0][0].tzinfo


@pytest.mark.parametrize("line", ["", "{", '{"event": 1}', "[]", "Traceback (most recent", "a b"])
def test_any_other_line_is_none(line: str) -> None:
    assert event_in(line) is None


def test_the_form_is_that_of_the_option_or_of_the_environment() -> None:
    parser = ArgumentParser()
    add_log_option(parser)
    env = {"SHARDMERGE_LOG_FORMAT": "json"}
    assert form_of(parser.parse_args([]).log_format, {}) == "plain"
    assert form_of(parser.parse_args([]).log_format, env) == "json"
    assert form_of(parser.parse_args(["--log-format", "plain"]).log_format, env) == "plain"
    with pytest.raises(ConfigError, match="SHARDMERGE_LOG_FORMAT is 'xml'"):
        form_of(None, {"SHARDMERGE_LOG_FORMAT": "xml"})


def test_a_text_with_percent_signs_is_no_format() -> None:
    record = logging.LogRecord("x", 30, "f", 1, "100 %s", (), None)
    assert EventFormatter("cli").format(record).endswith(" WARNING cli x: 100 %s")
