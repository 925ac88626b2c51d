"""The same rollout under other policies or modes, for ``--compare``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from shardmerge.agents.preview.plan import numbered, planned
from shardmerge.agents.preview.report import sums_of
from shardmerge.agents.preview.rollout import RolloutStep
from shardmerge.agents.preview.shapes import ShownAlternative
from shardmerge.agents.preview.simulated_agents import AgentsState, SimulatedAgents
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.policies import CHOICES
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.operator_commands import CommandKind

from .side_by_side import side_by_side

_MODE = "mode"


def settings_of(text: str) -> list[tuple[str, str]]:
    """Read a text such as ``renames=map,hold`` as names and values of settings.

    Raises:
        ConfigError: No policy has this name or value.
    """
    name, equals, words = text.partition("=")
    values = [word.strip() for word in words.split(",") if word.strip()]
    if not equals or name not in CHOICES or not values:
        raise ConfigError(
            f"--compare {text}: expected NAME=VALUE,VALUE",
            hint=f"NAME is one of {', '.join(CHOICES)}",
            code="SM-5601",
        )
    for value in values:
        if value not in tuple(CHOICES[name]):
            raise ConfigError(
                f"--compare {text}: {name} {value!r} is not known",
                hint=f"known: {', '.join(CHOICES[name])}",
                code="SM-5005",
            )
    return [(name, value) for value in values]


def with_policy(pipeline: Pipeline, name: str, value: str) -> Pipeline:
    """The pipeline, with this value of a policy in all of its routes."""
    change: dict[str, Any] = {name: CHOICES[name](value)}
    routes = (
        replace(route, policies=replace(route.policies, **change)) for route in pipeline.routes
    )
    return replace(pipeline, routes=tuple(routes))


def alternatives(
    pipeline: Pipeline,
    present: Callable[[SimulatedAgents], AgentsState],
    settings: Sequence[tuple[str, str]],
    steps: Sequence[RolloutStep],
    *,
    commanded: bool,
) -> Iterator[ShownAlternative]:
    """The sums of the rollout under each setting.

    Args:
        pipeline: With the policies of its file.
        present: Gives what the agents of a ``SimulatedAgents`` know before the rollout.
        settings: Names and values of policies.
        steps: Of the rollout.
        commanded: Whether the targets exist already. If so, the setting begins with the rollout, as
            after the commands ``set-policy`` and ``set-mode``. Otherwise it holds from the first
            table on.

    Raises:
        ConfigError: A target refuses the setting.
    """

    def alternative(name: str, value: str) -> ShownAlternative:
        agents = SimulatedAgents(pipeline if commanded else with_policy(pipeline, name, value))
        before = present(agents)
        if commanded:
            before = _commanded(agents, before, name, value)
        return sums_of(f"{name}={value}", planned(agents, before, numbered(steps)))

    return side_by_side(partial(alternative, name, value) for name, value in settings)


def _commanded(agents: SimulatedAgents, state: AgentsState, name: str, value: str) -> AgentsState:
    for target in sorted(state.targets):
        kind = CommandKind.SET_MODE if name == _MODE else CommandKind.SET_POLICY
        argument = value if name == _MODE else f"{name}={value}"
        state, answer = agents.commanded(state, target, kind, argument=argument)
        if answer is not None and answer.decision.outcome is Outcome.REFUSED:
            raise ConfigError(
                f"--compare {name}={value}: {target} refuses it: {answer.decision.reason}",
                hint=answer.decision.hint,
                code="SM-5601",
            )
    return state
