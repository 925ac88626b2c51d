"""The images' recipes, read without an engine: users, pins, labels, health checks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

DOCKER = Path(__file__).parents[2] / "docker"
RECIPES = sorted(DOCKER.glob("*.Dockerfile"))
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
LABELS = {"title", "description", "licenses", "version", "revision", "base.name", "base.digest"}


def instructions(recipe: Path) -> list[tuple[str, str]]:
    """Instruction and arguments, continued lines joined, comments left out."""
    lines = [line for line in recipe.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [
        (word, rest.strip())
        for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)
    ]


def stages(recipe: Path) -> list[list[tuple[str, str]]]:
    """The instructions of each stage, from its FROM on."""
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions(recipe):
        if word == "FROM":
            found.append([])
        if found:
            found[-1].append((word, rest))
    return found


def images(recipe: Path) -> list[list[tuple[str, str]]]:
    """The stages that become an image: the last one, and those that only ``--target`` builds."""
    found = stages(recipe)
    text = recipe.read_text()
    targets = re.findall(r"--target (\w+)", text)
    return [stage for stage in found if stage[0][1].rpartition(" AS ")[2] in targets] + [found[-1]]


def _serves(service: dict[str, Any]) -> bool:
    """Whether a service runs an image of ours, and is asked by the image's own health check."""
    recipe = service.get("build", {}).get("dockerfile")
    return (
        "healthcheck" not in service
        and recipe is not None
        and any(word == "HEALTHCHECK" for word, _ in stages(DOCKER.parent / recipe)[-1])
    )


EACH = [
    pytest.param(stage, id=f"{recipe.stem}-{number}")
    for recipe in RECIPES
    for number, stage in enumerate(images(recipe))
]


def test_there_is_an_image_for_agents_and_two_for_connect_and_for_the_sink() -> None:
    assert len(EACH) == len(RECIPES) + 2 == 5


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.stem)
def test_each_base_image_can_be_pinned_by_a_digest(recipe: Path) -> None:
    every = instructions(recipe)
    before = every[: [word for word, _ in every].index("FROM")]
    given = {
        rest.partition("=")[0]: rest.partition("=")[2] for word, rest in before if word == "ARG"
    }
    names = {stage[0][1].rpartition(" AS ")[2] for stage in stages(recipe)}
    for stage in stages(recipe):
        base = stage[0][1].partition(" AS ")[0]
        if base in names:
            continue
        found = re.fullmatch(r"\$\{(\w+)_IMAGE\}\$\{\1_DIGEST:\+@\$\{\1_DIGEST\}\}", base)
        assert found is not None, base
        assert ":" in given[f"{found[1]}_IMAGE"], "a tag of its own, never the latest"
        assert given[f"{found[1]}_DIGEST"] == '""'


@pytest.mark.parametrize("stage", EACH)
def test_an_image_runs_as_a_user_that_is_a_number_and_not_root(
    stage: list[tuple[str, str]],
) -> None:
    users = [rest for word, rest in stage if word == "USER"]
    assert re.fullmatch(r"[1-9]\d*", users[-1])


@pytest.mark.parametrize("stage", EACH)
def test_an_image_says_what_it_is_and_what_it_was_made_from(stage: list[tuple[str, str]]) -> None:
    [label] = [rest for word, rest in stage if word == "LABEL"]
    values = dict(re.findall(r'org\.opencontainers\.image\.([\w.]+)="([^"]*)"', label))
    assert values.keys() == LABELS
    given = {rest.partition("=")[0] for word, rest in stage if word == "ARG"}
    # An argument from before the first FROM is empty in a stage that does not name it again.
    assert set(re.findall(r"\$\{(\w+)\}", label)) <= given


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.stem)
def test_an_image_asks_a_port_that_its_command_serves(recipe: Path) -> None:
    stage = stages(recipe)[-1]
    [check] = [rest for word, rest in stage if word == "HEALTHCHECK"]
    assert "HEALTH_URL" in check
    [url] = [rest for word, rest in stage if word == "ENV" and rest.startswith("HEALTH_URL=")]
    port = re.search(r"http://127\.0\.0\.1:(\d+)/", url)
    assert port is not None
    commands = [json.loads(rest) for word, rest in stage if word == "CMD"]
    for command in commands:
        assert port[1] in command


OURS = [name for name, each in COMPOSE["services"].items() if _serves(each)]


def test_every_part_of_the_line_is_asked() -> None:
    assert set(OURS) == {"agents", "sink", "validator", "watchdog"}


def test_the_services_run_as_users_that_are_numbers_and_not_root_where_that_works() -> None:
    users = {name: each["user"] for name, each in COMPOSE["services"].items() if "user" in each}
    # Nothing in the registry's image gives its volume to a user of its own.
    assert users.pop("registry") == "0"
    assert users
    assert all(re.fullmatch(r"[1-9]\d*:[1-9]\d*", user) for user in users.values())


@pytest.mark.parametrize("name", OURS)
def test_a_service_of_the_line_is_asked_at_a_port_that_it_serves(name: str) -> None:
    service = COMPOSE["services"][name]
    recipe = DOCKER.parent / service["build"]["dockerfile"]
    stage = stages(recipe)[-1]
    [default] = [json.loads(rest) for word, rest in stage if word == "CMD"]
    [url] = [rest for word, rest in stage if word == "ENV" and rest.startswith("HEALTH_URL=")]
    asked = service.get("environment", {}).get("HEALTH_URL", url)
    port = re.search(r":(\d+)/", asked)
    assert port is not None
    assert port[1] in service.get("command", default)
