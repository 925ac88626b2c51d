from __future__ import annotations

import pytest

from tests.e2e.runner.operators import unlocks
from tests.e2e.runner.parts import PartEvent, part_event


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("restart_worker 2", PartEvent("restart", "connector", "s2")),
        ("start_worker 1", PartEvent("start", "connector", "s1")),
        ("kill dm-worker2", PartEvent("kill", "connector", "s2")),
        ("restart_worker_s1", PartEvent("restart", "connector", "s1")),
        ("restart_coordinator", PartEvent("restart", "agents")),
        ("kill dm-master", PartEvent("kill", "agents")),
        ("kill the sink", PartEvent("kill", "sink")),
        ("crash syncer", PartEvent("kill", "sink")),
        ("kill kafka connect", PartEvent("kill", "connect")),
        ("restart kafka", PartEvent("restart", "kafka")),
        ("kill downstream", PartEvent("kill", "target")),
        ("restart mysql s2", PartEvent("restart", "source", "s2")),
        ("kill source 1", PartEvent("kill", "source", "s1")),
        ("stop source s1", PartEvent("stop", "connector", "s1")),
        ("stop s2", PartEvent("stop", "connector", "s2")),
        ("resume connector of s2", PartEvent("start", "connector", "s2")),
        ("stop sources", PartEvent("stop", "connector")),
    ],
)
def test_an_event_names_a_part_in_the_usual_words(text: str, event: PartEvent) -> None:
    assert part_event(text) == event


@pytest.mark.parametrize("text", ["kill the moon", "worker 2", "random_restart", ""])
def test_what_names_no_part_is_none(text: str) -> None:
    assert part_event(text) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("shard-ddl-lock unlock test-merged.t", "unlock-execute"),
        ("shard-ddl-lock unlock test-`merged`.`t` --action exec", "unlock-execute"),
        ("shard-ddl-lock unlock test-merged.t --action skip", "unlock-discard"),
        ("unlock-ddl-lock test-merged.t -a skip", "unlock-discard"),
        ("shard-ddl-lock unlock test-merged.t -s s2 -d app1 -t t_1 --action skip", ""),
        ("binlog skip test", ""),
    ],
)
def test_a_lock_is_unlocked_as_a_whole(text: str, kind: str) -> None:
    assert unlocks(text) == kind
