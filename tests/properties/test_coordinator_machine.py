"""The coordinator under random schema changes of random shards, replays and restarts.

In both modes and with every policy of renames, and with these changing in between.
"""

from __future__ import annotations

from hypothesis import settings

from tests.properties.coordinator_machine import CoordinatorMachine

TestCoordinator = CoordinatorMachine.TestCase
# One history is worth many examples of a law.
TestCoordinator.settings = settings(
    max_examples=max(20, settings().max_examples // 6), stateful_step_count=25
)
