"""A notice, or a heartbeat behind rows, never moves back the place from which a task starts."""

from __future__ import annotations

import pytest

from .java_mains import JavaMain

NOTICE = "Incremental Snapshot"
OTHER = "Initial Snapshot"


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> JavaMain:
    return JavaMain("QueuedNotices", tmp_path_factory.mktemp("queue"))


def test_a_notice_has_the_offset_of_the_event_in_front_of_it(queue: JavaMain) -> None:
    """An older one would let rows come twice after a restart, a newer one would lose a row."""
    put = ["row 7", f"{NOTICE} 5", f"{NOTICE} 8", "row 8", f"{NOTICE} 8"]
    assert queue.told(put) == ["row 7", f"{NOTICE} 7", f"{NOTICE} 7", "row 8", f"{NOTICE} 8"]


def test_a_notice_before_the_first_event_leaves_behind_it(queue: JavaMain) -> None:
    put = [f"{NOTICE} 3", f"{NOTICE} 4", "row 4", "row 5"]
    assert queue.told(put) == ["row 4", f"{NOTICE} 4", f"{NOTICE} 4", "row 5"]


def test_other_notices_keep_their_offsets(queue: JavaMain) -> None:
    """That a first snapshot is complete is told by the offset of its last notice."""
    put = ["row 7", f"{OTHER} 9", f"{NOTICE} 8"]
    assert queue.told(put) == ["row 7", f"{OTHER} 9", f"{NOTICE} 9"]


def test_a_heartbeat_behind_rows_does_not_let_them_come_again(queue: JavaMain) -> None:
    """Debezium makes it before it counts the event of the rows: it names no row."""
    put = ["row 7/2/1", "row 7/2/2", "heartbeat 7/2", "heartbeat 7/5", "heartbeat 9", "row 9/1/1"]
    assert queue.told(put) == [
        "row 7/2/1", "row 7/2/2", "heartbeat 7/2/2", "heartbeat 7/2/2", "heartbeat 9", "row 9/1/1",
    ]  # fmt: skip


def test_a_heartbeat_moves_the_place_on_while_no_row_comes(queue: JavaMain) -> None:
    put = ["heartbeat 3", "row 7", "heartbeat 7/2", "heartbeat 8", f"{NOTICE} 5"]
    assert queue.told(put) == [
        "heartbeat 3",
        "row 7",
        "heartbeat 7/2",
        "heartbeat 8",
        f"{NOTICE} 8",
    ]
