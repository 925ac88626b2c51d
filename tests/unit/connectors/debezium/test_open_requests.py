"""Which requests for snapshots are unanswered, and what is done about them."""

from __future__ import annotations

import json

import pytest

from shardmerge.connectors.debezium.open_requests import OpenRequests, Remedy, Request, request_of
from shardmerge.connectors.debezium.signals import Notice, snapshot_signal
from shardmerge.schemas.model.names import ShardId


def request(table: str, number: int = 1, source: str = "s1") -> Request:
    record = snapshot_signal(f"{source}@{number}.0", ShardId(source, "app", table))
    found = request_of(*record)
    assert found is not None
    return found


def said(type_: str, table: str = "", status: str = "SUCCEEDED", source: str = "s1") -> Notice:
    if type_ != "TABLE_SCAN_COMPLETED":
        return Notice(source, "id", type_)
    return Notice(source, "id", type_, status, f"app.{table}")


def due(requests: OpenRequests, now_s: float) -> list[tuple[str, Remedy, list[str]]]:
    return [(name, remedy, [r.table for r in open_]) for name, remedy, open_ in requests.due(now_s)]


def test_our_requests_are_known_by_their_form() -> None:
    key, value = snapshot_signal("s1@1.0", ShardId("s1", "größe", "t.1"))
    assert request_of(key, value) == Request("s1", "größe.t.1", value)
    whole = json.loads(value)
    for other in (
        None,
        b"",
        b"no JSON",
        b"[]",
        json.dumps(whole | {"type": "stop-snapshot"}).encode(),
        json.dumps(whole | {"data": {"data-collections": ["app.*"]}}).encode(),
        json.dumps(whole | {"data": {"data-collections": [r"\Qa.t\E", r"\Qa.u\E"]}}).encode(),
    ):
        assert request_of(b"s1", other) is None


def test_a_scan_answers_the_oldest_request_of_its_table() -> None:
    requests = OpenRequests(shortest_s=10.0)
    for asked in (request("t", 1), request("u", 2), request("t", 3)):
        requests.add_request(asked, 0.0)
    requests.add_notice(said("TABLE_SCAN_COMPLETED", "t"), 1.0)
    assert due(requests, 11.0) == [("s1", Remedy.RESTART, ["app.u", "app.t"])]
    requests.add_notice(said("TABLE_SCAN_COMPLETED", "u"), 12.0)
    requests.add_notice(said("TABLE_SCAN_COMPLETED", "t", "EMPTY"), 12.0)
    requests.add_notice(said("TABLE_SCAN_COMPLETED", "t"), 12.0)
    assert due(requests, 99.0) == []


def test_each_notice_of_the_source_counts_as_life() -> None:
    requests = OpenRequests(shortest_s=10.0)
    requests.add_request(request("t"), 0.0)
    requests.add_request(request("u", 2), 9.0)
    requests.add_notice(said("STARTED"), 9.0)
    requests.add_notice(said("IN_PROGRESS", source="s2"), 18.0)
    assert due(requests, 18.9) == []
    assert due(requests, 19.0) == [("s1", Remedy.RESTART, ["app.t", "app.u"])]


@pytest.mark.parametrize("last", ["", "COMPLETED"])
def test_an_idle_connector_is_asked_again(last: str) -> None:
    requests = OpenRequests(shortest_s=10.0)
    if last:
        requests.add_notice(said(last), 0.0)
    requests.add_request(request("t"), 100.0)
    assert due(requests, 109.0) == []
    assert due(requests, 110.0) == [("s1", Remedy.SEND_AGAIN, ["app.t"])]
    requests.tried("s1", Remedy.SEND_AGAIN, 110.0)
    requests.add_request(request("t"), 111.0)  # as it comes back from the topic
    assert due(requests, 129.0) == []
    assert due(requests, 130.0) == [("s1", Remedy.RESTART, ["app.t"])]


def test_the_remedies_take_turns_with_growing_pauses_up_to_an_hour() -> None:
    requests = OpenRequests(shortest_s=30.0)
    requests.add_request(request("t"), 0.0)
    requests.add_notice(said("IN_PROGRESS"), 0.0)
    now, times, remedies = 0, list[int](), list[Remedy]()
    while len(times) < 10:
        now += 1
        for name, remedy, _ in tuple(requests.due(float(now))):
            requests.tried(name, remedy, float(now))
            times.append(now)
            remedies.append(remedy)
    pauses = [late - early for early, late in zip([0, *times], times, strict=False)]
    assert pauses == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert remedies == [Remedy.RESTART, Remedy.SEND_AGAIN] * 5
    requests.add_notice(said("IN_PROGRESS"), float(now))
    assert due(requests, now + 30.0) == [("s1", Remedy.RESTART, ["app.t"])]


def test_what_could_not_be_read_is_asked_for_again_and_what_was_given_up_is_not() -> None:
    requests = OpenRequests(shortest_s=10.0)
    requests.add_request(request("t"), 0.0)
    requests.add_notice(said("TABLE_SCAN_COMPLETED", "t", "SQL_EXCEPTION"), 1.0)
    requests.add_notice(said("COMPLETED"), 1.0)
    assert due(requests, 11.0) == [("s1", Remedy.SEND_AGAIN, ["app.t"])]
    requests.add_notice(said("ABORTED"), 12.0)
    assert due(requests, 99.0) == []


def test_a_snapshot_that_an_operator_paused_is_left_alone() -> None:
    requests = OpenRequests(shortest_s=10.0)
    requests.add_request(request("t"), 0.0)
    requests.add_notice(said("PAUSED"), 1.0)
    assert due(requests, 9999.0) == []
    requests.add_notice(said("RESUMED"), 10000.0)
    assert due(requests, 10010.0) == [("s1", Remedy.RESTART, ["app.t"])]


def test_a_scan_that_failed_is_asked_for_again_although_other_tables_are_read() -> None:
    """The server had another schema already than the connector knew."""
    requests = OpenRequests(shortest_s=30.0)
    requests.add_request(request("t", 1), 0.0)
    requests.add_request(request("u", 2), 0.0)
    requests.add_notice(said("TABLE_SCAN_COMPLETED", "t", "SQL_EXCEPTION"), 10.0)
    requests.add_notice(said("IN_PROGRESS"), 11.0)
    assert due(requests, 11.9) == []
    assert due(requests, 12.0) == [("s1", Remedy.SEND_AGAIN, ["app.t"])]
    requests.tried("s1", Remedy.SEND_AGAIN, 12.0)
    requests.add_request(request("t", 1), 12.5)  # as it comes back from the topic
    requests.add_notice(said("IN_PROGRESS"), 13.0)
    assert due(requests, 40.0) == []

    requests.add_notice(said("TABLE_SCAN_COMPLETED", "t", "SQL_EXCEPTION"), 41.0)
    assert due(requests, 44.9) == []
    assert due(requests, 45.0) == [("s1", Remedy.SEND_AGAIN, ["app.t"])]
    requests.add_notice(said("TABLE_SCAN_COMPLETED", "t"), 46.0)
    assert due(requests, 60.0) == []
    assert [r.table for r in requests.of("s1")] == ["app.u"]
