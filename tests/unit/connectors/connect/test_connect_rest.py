"""The REST client and the exactly-once check against a scripted worker."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import replace
from typing import Any

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.connect.exact_values import check_values
from shardmerge.connectors.connect.exactly_once import check_connector, check_worker
from shardmerge.connectors.formats.connector_status import shorten_trace
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Target
from tests.unit.connectors.worker import Worker

TRACE = """org.apache.kafka.connect.errors.ConnectException: it was stopped.
\tat io.debezium.pipeline.ErrorHandler.setProducerThrowable(ErrorHandler.java:67)
\t... 5 more
Caused by: io.debezium.DebeziumException: no such binlog file
\tat io.debezium.X.y(X.java:1)
"""
CONFIG = {"connector.class": "x.Y", "exactly.once.support": "required"}
VALIDATE = "/connector-plugins/x.Y/config/validate"


def status(connector: str, *tasks: str) -> dict[str, Any]:
    return {
        "name": "c",
        "connector": {"state": connector},
        "tasks": [
            {"id": i, "state": t} | ({"trace": TRACE} if t == "FAILED" else {})
            for i, t in enumerate(tasks)
        ],
    }


def objections(**errors: list[str]) -> dict[str, Any]:
    values: list[Any] = [{"value": {"name": key.replace("_", "."), "errors": texts}}
                         for key, texts in errors.items()]  # fmt: skip
    # Debezium leaves some keys without a value.
    return {"configs": [*values, {"value": None}, {"value": {"name": "fine", "errors": []}}]}


def test_a_rebalancing_worker_is_waited_for(worker: Worker, rest: ConnectRest) -> None:
    worker.on(
        "GET",
        "/connectors",
        (409, {"message": "rebalance"}),
        (500, {"message": "Request timed out"}),
        (503, None),
        (200, ["b", "a"]),
    )

    assert rest.connectors() == ("a", "b")


def test_a_refusal_is_not_repeated(worker: Worker, rest: ConnectRest) -> None:
    worker.on("GET", "/connectors", (400, {"message": "nonsense"}))

    with pytest.raises(StackError, match="400: nonsense"):
        rest.connectors()

    assert len(worker.requests) == 1


def test_an_unreachable_worker_is_named(worker: Worker) -> None:
    rest = ConnectRest("http://127.0.0.1:1", patience_s=0.0)

    with pytest.raises(StackError, match=r"http://127\.0\.0\.1:1 cannot be reached") as caught:
        rest.connectors()
    rest.close()

    assert caught.value.hint


def test_a_worker_that_does_not_answer_makes_the_next_one_be_asked(worker: Worker) -> None:
    worker.on("GET", "/connectors", (200, ["a"]), (200, ["b"]))
    rest = ConnectRest(f"http://127.0.0.1:1/, {worker.url}/", patience_s=0.0)

    assert (rest.connectors(), rest.url) == (("a",), worker.url)
    assert rest.connectors() == ("b",)
    rest.close()


def test_a_worker_that_has_not_started_yet_makes_the_next_one_be_asked(worker: Worker) -> None:
    worker.on("GET", "/starting/connectors", (503, None))
    worker.on("GET", "/connectors", (200, ["a"]))
    rest = ConnectRest(f"{worker.url}/starting,{worker.url}", patience_s=0.0)

    assert rest.connectors() == ("a",)
    rest.close()


def test_when_no_worker_answers_each_is_asked_before_that_is_told(worker: Worker) -> None:
    worker.on("GET", "/connectors", (503, None))
    rest = ConnectRest(f"{worker.url},http://127.0.0.1:1,{worker.url}/other", patience_s=0.0)
    worker.on("GET", "/other/connectors", (503, None))

    with pytest.raises(StackError, match=r"/other/connectors → 503"):
        rest.connectors()
    rest.close()


def test_an_equal_configuration_is_not_sent_again(worker: Worker, rest: ConnectRest) -> None:
    worker.on("GET", "/connectors/c/config", (200, CONFIG | {"name": "c"}))

    assert not rest.create_or_update("c", CONFIG)
    assert worker.asked("PUT") == []


def test_a_different_configuration_is_validated_and_sent(worker: Worker, rest: ConnectRest) -> None:
    worker.on("GET", "/connectors/c/config", (200, {"name": "c"}))
    worker.on("PUT", VALIDATE, (200, objections()))
    worker.on("PUT", "/connectors/c/config", (201, {}))

    assert rest.create_or_update("c", CONFIG)
    assert worker.requests[-1] == ("PUT", "/connectors/c/config", CONFIG)


def test_a_connector_is_made_stopped_when_nothing_is_against_it(
    worker: Worker, rest: ConnectRest
) -> None:
    worker.on("PUT", VALIDATE, (200, objections()), (200, objections(topic_prefix=["bad"])))
    worker.on("POST", "/connectors", (201, {}))

    rest.create_stopped("c", CONFIG)
    body = {"name": "c", "config": CONFIG, "initial_state": "STOPPED"}
    assert worker.requests[-1] == ("POST", "/connectors", body)
    with pytest.raises(StackError, match=r"c is refused: topic\.prefix: bad"):
        rest.create_stopped("c", CONFIG)
    assert len(worker.asked("POST")) == 1


def test_a_refused_configuration_is_told_with_every_objection(
    worker: Worker, rest: ConnectRest
) -> None:
    worker.on("PUT", VALIDATE, (200, objections(database_user=["missing"], topic_prefix=["bad"])))

    with pytest.raises(StackError, match=r"c is refused: database\.user: missing; topic\.prefix"):
        rest.create_or_update("c", CONFIG)

    assert worker.asked("PUT") == [VALIDATE]


def test_running_means_the_connector_and_all_of_its_tasks(
    worker: Worker, rest: ConnectRest
) -> None:
    worker.on(
        "GET",
        "/connectors/c/status",
        (404, {}),
        (200, status("RUNNING")),
        (200, status("RUNNING", "UNASSIGNED")),
        (200, status("RUNNING", "RUNNING")),
    )

    assert rest.wait_running("c").is_running
    assert len(worker.requests) == 4


def test_a_failed_task_is_told_with_the_messages_of_its_trace(
    worker: Worker, rest: ConnectRest
) -> None:
    worker.on("GET", "/connectors/c/status", (200, status("RUNNING", "FAILED")))

    with pytest.raises(StackError, match=r"it was stopped\. / Caused by: .*no such binlog file"):
        rest.wait_running("c")


def test_a_failure_from_before_a_new_configuration_is_no_answer_to_it(
    worker: Worker, rest: ConnectRest
) -> None:
    """Connect stops the old task after it has taken the configuration."""
    failed, runs = (200, status("RUNNING", "FAILED")), (200, status("RUNNING", "RUNNING"))
    between = (200, status("UNASSIGNED", "FAILED"))
    worker.on("GET", "/connectors/c/status", failed, failed, between, runs)
    past = rest.status("c")
    assert past is not None
    assert rest.wait_running("c", past=past).is_running

    # The same once more is in the end what became of the new configuration too.
    worker.on("GET", "/connectors/c/status", failed)
    with pytest.raises(StackError, match=r"does not run .*no such binlog file"):
        rest.wait_running("c", timeout_s=0.5, past=past)


def test_a_connector_that_does_not_come_up_is_told_with_its_state(
    worker: Worker, rest: ConnectRest
) -> None:
    worker.on("GET", "/connectors/c/status", (200, status("RUNNING", "RESTARTING")))

    with pytest.raises(StackError, match="RUNNING, task 0 RESTARTING"):
        rest.wait_running("c", timeout_s=0.0)


def test_a_short_trace_has_messages_and_no_frames() -> None:
    assert (
        shorten_trace(TRACE, 1)
        == "org.apache.kafka.connect.errors.ConnectException: it was stopped."
    )
    assert " at " not in shorten_trace(TRACE)


def test_a_deleted_connector_is_waited_for(worker: Worker, rest: ConnectRest) -> None:
    worker.on("DELETE", "/connectors/c", (204, None))
    worker.on("GET", "/connectors", (200, ["c"]), (200, []))

    rest.delete("c")

    assert len(worker.asked("GET")) == 2


STOPPED = {"name": "c", "connector": {"state": "STOPPED"}, "tasks": []}


def test_a_connector_is_stopped_when_it_has_no_tasks(worker: Worker, rest: ConnectRest) -> None:
    worker.on("PUT", "/connectors/c/stop", (204, None))
    worker.on(
        "GET",
        "/connectors/c/status",
        (404, {}),
        (200, status("RUNNING", "RUNNING")),
        (200, status("STOPPED", "RUNNING")),
        (200, STOPPED),
    )

    rest.stop("c")

    assert worker.asked("PUT") == ["/connectors/c/stop"] and len(worker.asked("GET")) == 4


def test_a_connector_that_does_not_stop_is_told(worker: Worker) -> None:
    worker.on("PUT", "/connectors/c/stop", (204, None))
    worker.on("GET", "/connectors/c/status", (200, status("STOPPED", "RUNNING")))
    rest = ConnectRest(worker.url, patience_s=0.0)

    with pytest.raises(StackError, match="connector c has not stopped within 0 s") as caught:
        rest.stop("c")
    rest.close()

    assert caught.value.hint


def test_a_connector_is_paused_resumed_and_restarted(worker: Worker, rest: ConnectRest) -> None:
    worker.on("PUT", "/connectors/a%20b/pause", (202, None))
    worker.on("PUT", "/connectors/a%20b/resume", (202, None))
    worker.on("POST", "/connectors/a%20b/restart?includeTasks=true", (202, {}))

    rest.pause("a b")
    rest.resume("a b")
    rest.restart("a b")

    assert worker.requests == [
        ("PUT", "/connectors/a%20b/pause", None),
        ("PUT", "/connectors/a%20b/resume", None),
        ("POST", "/connectors/a%20b/restart?includeTasks=true", None),
    ]


OFFSET = {"file": "binlog.000001", "pos": 1787, "gtids": "x:1-6", "event": 2, "row": 1}


@pytest.mark.parametrize(
    ("offsets", "found"),
    [
        ([], None),
        ([{"partition": {"server": "s1"}, "offset": None}], None),
        ([{"partition": {"server": "s1"}, "offset": OFFSET}], OFFSET),
        (
            [{"partition": {"server": "old"}, "offset": None},
             {"partition": {"server": "s1"}, "offset": OFFSET}],
            OFFSET,
        ),
    ],
)  # fmt: skip
def test_the_offset_of_a_connector_is_its_one_sources(
    worker: Worker, rest: ConnectRest, offsets: list[Any], found: dict[str, Any] | None
) -> None:
    worker.on("GET", "/connectors/c/offsets", (200, {"offsets": offsets}))

    assert rest.offset("c") == found


def test_a_connector_with_the_offsets_of_two_sources_is_refused(
    worker: Worker, rest: ConnectRest
) -> None:
    offsets = [{"partition": {"server": name}, "offset": OFFSET} for name in ("s1", "s2")]
    worker.on("GET", "/connectors/c/offsets", (200, {"offsets": offsets}))

    with pytest.raises(StackError, match="connector c has the offsets of 2 sources"):
        rest.offset("c")


def test_an_offset_is_changed_for_its_source(worker: Worker, rest: ConnectRest) -> None:
    worker.on("PATCH", "/connectors/c/offsets", (200, {"message": "altered"}))

    rest.set_offset("c", "s1", OFFSET)

    body = {"offsets": [{"partition": {"server": "s1"}, "offset": OFFSET}]}
    assert worker.requests == [("PATCH", "/connectors/c/offsets", body)]


def test_an_offset_of_a_connector_that_runs_is_not_changed(
    worker: Worker, rest: ConnectRest
) -> None:
    worker.on("PATCH", "/connectors/c/offsets", (400, {"message": "must be in the STOPPED state"}))

    with pytest.raises(StackError, match="must be in the STOPPED state"):
        rest.set_offset("c", "s1", OFFSET)


def test_a_configuration_is_set_as_it_is(worker: Worker, rest: ConnectRest) -> None:
    worker.on("PUT", "/connectors/c/config", (200, {}))

    rest.set_config("c", CONFIG)

    assert worker.requests == [("PUT", "/connectors/c/config", CONFIG)]


def test_a_worker_that_objects_to_exactly_once_is_refused(
    worker: Worker, rest: ConnectRest
) -> None:
    worker.on("PUT", VALIDATE, (200, objections(exactly_once_support=["not enabled"])))

    with pytest.raises(StackError, match=r"no exactly-once source .* not enabled") as caught:
        check_worker(rest, CONFIG)

    assert "exactly.once.source.support=enabled" in caught.value.hint


def test_other_objections_are_not_about_exactly_once(worker: Worker, rest: ConnectRest) -> None:
    worker.on("PUT", VALIDATE, (200, objections(database_hostname=["down"])))

    check_worker(rest, CONFIG)


@pytest.mark.parametrize(
    "wrong", [{"exactly.once.support": "requested"}, {"transaction.boundary": "interval"}]
)
def test_a_connector_in_force_must_require_it(
    worker: Worker, rest: ConnectRest, wrong: dict[str, str]
) -> None:
    worker.on("PUT", VALIDATE, (200, objections()))
    worker.on("GET", "/connectors/good/config", (200, CONFIG))
    worker.on("GET", "/connectors/bad/config", (200, CONFIG | wrong))

    check_connector(rest, "good")
    with pytest.raises(StackError, match="connector bad has"):
        check_connector(rest, "bad")


def test_workers_without_the_converter_of_exact_values_are_told(
    worker: Worker, rest: ConnectRest
) -> None:
    target = Target("h", 1, "u", "p")
    pipeline = Pipeline("p", Kafka("127.0.0.1:9092"), Connect("http://c"), (), (), target)
    listed = [{"class": "io.debezium.connector.mysql.MySqlConnector", "type": "source"}]
    worker.on("GET", "/connector-plugins?connectorsOnly=false", (200, listed))
    with pytest.raises(StackError, match="lacks the converter") as caught:
        check_values(rest, pipeline)
    assert "exact_values = false" in caught.value.hint
    check_values(rest, replace(pipeline, connect=Connect("http://c", exact_values=False)))
    listed.append({"class": "shardmerge.connect.ExactValuesPresent", "type": "predicate"})
    check_values(rest, pipeline)


def test_a_user_is_sent_and_one_that_is_refused_is_told_without_a_password(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_PASSWORD", "gehäim")
    worker.on("GET", "/connectors", (401, {"message": "User cannot access the resource."}))
    rest = ConnectRest.of(Connect(worker.url, user="me", password="env:A_PASSWORD"))

    with pytest.raises(StackError, match="401: User cannot access the resource") as caught:
        rest.connectors()
    rest.close()

    assert "user and password under [connect]" in caught.value.hint
    assert "geh" not in str(caught.value)
    sent = worker.headers[-1]["Authorization"].removeprefix("Basic ")
    assert b64decode(sent).decode() == "me:gehäim"


@pytest.mark.parametrize(
    ("password", "objection", "hint"),
    [
        ("${env:P}", "Unable to connect: Access denied for user 'u'", "config.providers"),
        ("p", "Unable to connect: Access denied for user 'u'", ""),
        ("p", "Unable to connect: Public Key Retrieval is not allowed", "leave driver.allow"),
        ("p", "Unable to connect: Communications link failure", "truststore"),
        ("p", "Failed to establish connection with the database: ", "truststore"),
    ],
)
def test_what_can_be_behind_a_refused_connection_is_told(
    worker: Worker, rest: ConnectRest, password: str, objection: str, hint: str
) -> None:
    worker.on("GET", "/connectors/c/config", (404, {"message": "none"}))
    worker.on("PUT", VALIDATE, (200, objections(database_hostname=[objection])))

    with pytest.raises(StackError, match="is refused") as caught:
        rest.create_or_update("c", CONFIG | {"database.password": password})

    assert hint in caught.value.hint
    assert bool(hint) == bool(caught.value.hint)
