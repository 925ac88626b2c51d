"""When a failed connector is restarted, and when that is given up."""

from __future__ import annotations

from shardmerge.connectors.connect.restarts import Restarts


def test_the_pauses_double_up_to_a_minute() -> None:
    restarts, now_s, pauses = Restarts(3.0), 0.0, []
    for _ in range(7):
        restarts.begun(now_s)
        pause = next(p for p in range(100) if restarts.is_due(now_s + p))
        pauses.append(pause)
        now_s += pause
    assert pauses == [3, 6, 12, 24, 48, 60, 60]


def test_the_first_restart_is_due_at_once() -> None:
    assert Restarts(3.0).is_due(-1e9)


def test_one_that_ran_for_a_whole_pause_is_calm_again() -> None:
    restarts = Restarts(3.0)
    for now_s in (0.0, 3.0):
        restarts.begun(now_s)
    restarts.runs(8.9)
    assert not restarts.is_due(8.9)
    restarts.begun(9.0)
    assert restarts.is_due(21.0) and not restarts.is_due(20.9)
    restarts.runs(21.0)
    restarts.begun(30.0)
    assert restarts.is_due(33.0)


def test_after_ten_restarts_without_a_change_the_pauses_grow_up_to_ten_minutes() -> None:
    restarts, offset, now_s, pauses = Restarts(3.0), {"file": "b.000001", "pos": 4}, 0.0, []
    for number in range(16):
        assert restarts.helps("purged", dict(offset)) == (number < 10)
        assert restarts.fruitless == number
        restarts.begun(now_s)
        pause = next(p for p in range(1000) if restarts.is_due(now_s + p))
        pauses.append(pause)
        now_s += pause
    assert pauses[:10] == [3, 6, 12, 24, 48, 60, 60, 60, 60, 60]
    assert pauses[10:] == [120, 240, 480, 600, 600, 600]


def test_a_connector_is_given_up_once_for_each_failure() -> None:
    restarts = _given_up()
    assert not restarts.is_given_up
    assert [restarts.gives_up() for _ in range(3)] == [True, False, False]
    assert restarts.is_given_up


def test_another_place_or_another_reason_begins_again() -> None:
    for reason, offset in (("purged", {"pos": 5}), ("other", {"pos": 4}), ("purged", None)):
        restarts = _given_up()
        assert restarts.gives_up()
        for number in range(4):
            restarts.begun(10_000.0 * number)
        assert restarts.helps(reason, offset) and restarts.fruitless == 0
        assert not restarts.is_given_up
        restarts.begun(50_000.0)
        assert restarts.is_due(50_001.0)
        for number in range(9):
            restarts.begun(60_000.0 + number)
        assert not restarts.helps(reason, offset) and restarts.gives_up()


def test_a_failure_is_forgotten_once_the_connector_runs_ten_minutes_after_its_restart() -> None:
    restarts = _given_up()
    assert restarts.gives_up()
    restarts.begun(10_000.0)
    restarts.runs(10_599.9)
    assert (restarts.is_given_up, restarts.fruitless) == (True, 11)
    restarts.runs(10_600.0)
    assert (restarts.is_given_up, restarts.fruitless) == (False, 0)
    assert restarts.helps("purged", {"pos": 4})


def _given_up() -> Restarts:
    restarts = Restarts(1.0)
    assert restarts.helps("purged", {"pos": 4})
    for number in range(10):
        restarts.begun(float(number))
    assert not restarts.helps("purged", {"pos": 4})
    return restarts


def test_a_connector_without_an_offset_is_counted_too() -> None:
    restarts = Restarts(1.0)
    for number in range(10):
        assert restarts.helps("no grants", None)
        restarts.begun(float(number))
    assert not restarts.helps("no grants", None)


def test_a_look_without_a_restart_counts_for_the_pause_alone() -> None:
    restarts = Restarts(1.0)
    for number in range(20):
        assert restarts.helps("no idea", None)
        restarts.begun(100.0 * number)
        restarts.not_restarted()
    assert restarts.fruitless == 0
    assert not restarts.is_due(1959.9) and restarts.is_due(1960.0)
