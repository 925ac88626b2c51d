"""The container line is checked without an engine: files, commands, variables, order."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardmerge.schemas.pipeline import parse_pipeline

DOCKER = Path(__file__).parents[2] / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
PASSWORDS = {"SOURCE_PASSWORD": "a", "TARGET_PASSWORD": "b"}
PIPELINE = parse_pipeline((DOCKER / "pipeline.toml").read_text(), PASSWORDS)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_an_image_or_an_existing_dockerfile(name: str) -> None:
    service = SERVICES[name]

    assert ("image" in service) != ("build" in service)
    if "build" in service:
        context = (DOCKER / service["build"]["context"]).resolve()
        assert (context / service["build"]["dockerfile"]).is_file()
        assert (context / "requirements.lock").is_file()


@pytest.mark.parametrize("name", SERVICES)
def test_every_mounted_file_and_volume_exists(name: str) -> None:
    for mount in SERVICES[name].get("volumes", []):
        source = mount.split(":")[0]
        assert source in COMPOSE["volumes"] or (DOCKER / source).is_file(), mount


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_waits_only_for_services_with_a_health_check(name: str) -> None:
    for other, condition in SERVICES[name].get("depends_on", {}).items():
        assert condition == {"condition": "service_healthy"}
        assert "healthcheck" in SERVICES[other]


def test_every_published_port_is_bound_to_the_loopback_address() -> None:
    ports = [p for s in SERVICES.values() for p in s.get("ports", [])]

    assert ports
    assert all(p.startswith("127.0.0.1:") for p in ports)


def test_the_pipeline_file_names_services_and_gets_its_variables() -> None:
    text = (DOCKER / "pipeline.toml").read_text()

    hosts = {PIPELINE.target.host, *(s.host for s in PIPELINE.sources)}
    assert hosts <= set(SERVICES)
    assert PIPELINE.kafka.bootstrap_servers.split(":")[0] in SERVICES
    assert PIPELINE.connect.url.split("/")[2].split(":")[0] in SERVICES
    for service in ("agents", "sink", "watchdog"):
        assert set(re.findall(r"\$\{(\w+)\}", text)) == set(SERVICES[service]["environment"])


def test_the_connect_worker_delivers_exactly_once() -> None:
    assert SERVICES["connect"]["environment"]["CONNECT_EXACTLY_ONCE_SOURCE_SUPPORT"] == "enabled"


def test_every_source_has_its_own_server_id() -> None:
    ids = [s["command"][0] for s in SERVICES.values() if "--server-id" in str(s.get("command"))]

    assert len(ids) == len(set(ids)) == 3


@pytest.mark.parametrize("dockerfile", sorted(DOCKER.glob("*.Dockerfile")), ids=lambda p: p.name)
def test_an_image_starts_a_module_of_the_wheel(dockerfile: Path) -> None:
    text = dockerfile.read_text()
    root = Path(__file__).parents[2]
    mapped = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"][
        "package-dir"
    ]

    module = re.search(r'ENTRYPOINT \["python", "-m", "(shardmerge\.[\w.]+)"', text)
    assert module is not None
    package, _, name = module[1].rpartition(".")
    assert (root / mapped[package] / f"{name}.py").is_file()
    assert "PYTHONSAFEPATH=1" in text
    assert "--require-hashes" in text


def test_the_docker_folder_holds_no_python() -> None:
    assert not list(DOCKER.rglob("*.py"))
