from __future__ import annotations

from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.connector_states import ConnectorStates


def values(states: ConnectorStates) -> dict[tuple[str, ...], object]:
    return {(s.family.name, *s.labels): s.value for s in states.samples()}


def test_a_connector_that_was_not_asked_about_has_no_state() -> None:
    found = values(ConnectorStates(["c"]))
    assert found == {
        (catalog.CONNECTOR_RESTARTS.name, "c"): 0,
        (catalog.CONNECTOR_GIVEN_UP.name, "c"): 0,
    }


def test_a_state_replaces_the_one_before_and_tasks_are_counted() -> None:
    states = ConnectorStates(["c"])
    states.seen("c", "RUNNING", ["RUNNING"], 1.0)
    states.seen("c", "PAUSED", ["FAILED", "FAILED"], 2.0)
    found = values(states)
    assert [key for key in found if key[0] == catalog.CONNECTOR_STATE.name] == [
        (catalog.CONNECTOR_STATE.name, "c", "PAUSED")
    ]
    assert found[catalog.CONNECTOR_TASKS.name, "c", "FAILED"] == 2
    assert found[catalog.CONNECTOR_TASKS.name, "c", "RUNNING"] == 0
    assert found[catalog.WATCHDOG_LOOK.name, "c"] == 2.0


def test_what_is_given_up_ends_when_that_is_said_or_when_it_runs() -> None:
    given_up = (catalog.CONNECTOR_GIVEN_UP.name, "c")
    states = ConnectorStates(["c"])
    states.seen("c", "FAILED", [], 1.0)
    states.given_up("c", is_so=True)
    states.seen("c", "RUNNING", ["FAILED"], 2.0)
    states.restarted("c")
    assert values(states)[given_up] == 1
    states.given_up("c", is_so=False)
    assert values(states)[given_up] == 0
    states.given_up("c", is_so=True)
    states.seen("c", "RUNNING", ["RUNNING"], 3.0)
    assert values(states)[given_up] == 0
    assert values(states)[catalog.CONNECTOR_RESTARTS.name, "c"] == 1
