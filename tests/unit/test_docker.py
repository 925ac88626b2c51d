"""The container line is checked without an engine: files, commands, variables, order."""

import configparser
import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pytest
import yaml

from shardmerge.cli.deployment.supervision import STOP_S
from shardmerge.cli.main import main
from shardmerge.connectors.debezium.source_config import (
    EXACT_VALUES_PLUGIN,
    NO_ROW_TWICE,
    connector_config,
)
from shardmerge.local.install.artifacts import read_checksums
from shardmerge.local.servers.registry import RegistryArtifacts, registry_spec
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.secrets import PROVIDERS

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
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
    # Each password is where it is used: the worker, the watchdog and the sink connect to sources.
    assert not re.findall(r"\$\{(\w+)\}", text)
    assert {s.password for s in PIPELINE.sources} == {"env:SOURCE_PASSWORD"}
    assert PIPELINE.target.password == "env:TARGET_PASSWORD"
    passwords = {
        service: {name for name in has.get("environment", {}) if name in PASSWORDS}
        for service, has in SERVICES.items()
    }
    of_source, of_target = {"SOURCE_PASSWORD"}, {"TARGET_PASSWORD"}
    assert {service: names for service, names in passwords.items() if names} == {
        **dict.fromkeys(("mysql-s1", "mysql-s2", "connect", "watchdog"), of_source),
        "mysql-target": of_target,
        "sink": of_source | of_target,
        "validator": of_source | of_target,
    }


def test_the_worker_has_the_provider_that_connectors_refer_to() -> None:
    config = connector_config(PIPELINE, PIPELINE.sources[0])
    worker = SERVICES["connect"]["environment"]
    assert config["database.password"] == "${env:SOURCE_PASSWORD}"
    assert worker["CONNECT_CONFIG_PROVIDERS"] == "env"
    assert worker["CONNECT_CONFIG_PROVIDERS_ENV_CLASS"] == PROVIDERS["env"]


def test_no_health_check_shows_a_password() -> None:
    assert "-p" not in str(COMPOSE["x-source"]["healthcheck"]["test"])


@pytest.mark.parametrize(("script", "user"), [("source", "debezium"), ("target", "shardmerge")])
def test_the_accounts_get_the_passwords_of_the_variables(script: str, user: str) -> None:
    program = f"docker_process_sql() {{ cat; }}; . {DOCKER / 'mysql' / script}.sh"
    password = r"it's a \ $HOME"
    env = {"PATH": os.environ["PATH"], f"{script.upper()}_PASSWORD": password}
    made = subprocess.run(
        ["bash", "-c", program], env=env, capture_output=True, text=True, check=True
    ).stdout
    escaped = password.replace("\\", "\\\\").replace("'", "\\'")
    assert f"CREATE USER '{user}'@'%' IDENTIFIED BY '{escaped}';" in made
    assert f"TO '{user}'@'%';" in made
    # The image executes a script that may be executed, and then it lacks the image's functions.
    assert not os.access(DOCKER / "mysql" / f"{script}.sh", os.X_OK) or os.geteuid() == 0


def uncommented(text: str) -> str:
    """The file with every key that it shows in a comment."""
    return re.sub(r"(?m)^# (?=\w+ = )", "", text)


def test_the_keys_that_the_pipeline_file_shows_in_comments_are_real() -> None:
    text = uncommented((DOCKER / "pipeline.toml").read_text())

    kafka = parse_pipeline(text, PASSWORDS).kafka

    assert (kafka.row_format, kafka.record_format) == ("avro", "json")
    assert kafka.avro_converter == "apicurio"
    assert kafka.schema_registry_user


def test_the_registry_of_the_pipeline_file_is_the_one_of_its_profile() -> None:
    text = uncommented((DOCKER / "pipeline.toml").read_text())
    address = urlsplit(parse_pipeline(text, PASSWORDS).kafka.schema_registry)
    registry = SERVICES[address.hostname or ""]

    assert registry["profiles"] == ["avro"]
    assert "--profile avro" in text
    # It asks itself for what the others ask it for.
    asked = urlsplit(registry["healthcheck"]["test"][-1])
    assert (asked.port, asked.path) == (address.port, f"{address.path}/subjects")
    assert SERVICES["connect"]["environment"]["ENABLE_APICURIO_CONVERTERS"] == "true"


def test_the_registry_is_of_the_version_and_has_the_settings_that_are_tested(
    tmp_path: Path,
) -> None:
    fetched = (ROOT / "local/install/ivy-registry.xml").read_text()
    version = re.search(r'name="apicurio-registry-app" rev="([\d.]+)"', fetched)
    assert version is not None
    assert SERVICES["registry"]["image"] == f"apicurio/apicurio-registry:{version[1]}"
    (tmp_path / "apicurio-runner.jar").touch()
    local = registry_spec(RegistryArtifacts(Path("java"), tmp_path, tmp_path), tmp_path, 8080)
    settings = [word[2:].partition("=") for word in local.argv if word.startswith("-Dapicurio.")]

    # MicroProfile Config: a property's variable is its name in capitals, with _ for all else.
    tested = {re.sub(r"\W", "_", name).upper(): value for name, _, value in settings}
    ours = SERVICES["registry"]["environment"]
    assert ours.keys() == tested.keys()
    folder = SERVICES["registry"]["volumes"][0].partition(":")[2]
    moved = tested["APICURIO_DATASOURCE_URL"].replace(
        str(tmp_path / "schemas"), f"{folder}/registry"
    )
    assert ours == tested | {"APICURIO_DATASOURCE_URL": moved}


def test_no_service_of_every_profile_waits_for_one_of_a_profile() -> None:
    """Compose refuses that while the profile is not asked for."""
    for service in SERVICES.values():
        for other in service.get("depends_on", {}):
            assert set(SERVICES[other].get("profiles", [])) <= set(service.get("profiles", []))


OWNED = {("prom/prometheus", "/prometheus"): "65534:65534"}
"""Folders that others' images give to a user: ``chown nobody``, Dockerfile of Prometheus 3.5."""


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_may_write_into_its_volumes(name: str) -> None:
    """A named volume belongs to root unless the image has the folder already, for its user."""
    service = SERVICES[name]
    for mount in service.get("volumes", []):
        source, folder = mount.split(":")[:2]
        if source in COMPOSE["volumes"] and service.get("user") != "0":
            if owner := OWNED.get((service.get("image", "").partition(":")[0], folder)):
                assert service["user"] == owner
                continue
            assert "build" in service, "nobody makes the folder for the image's own user"
            made = (ROOT / service["build"]["dockerfile"]).read_text()
            assert re.search(rf"mkdir {folder} && chown \w+ {folder}\b", made)


def test_the_connect_worker_delivers_exactly_once() -> None:
    assert SERVICES["connect"]["environment"]["CONNECT_EXACTLY_ONCE_SOURCE_SUPPORT"] == "enabled"


def test_every_source_has_its_own_server_id() -> None:
    ids = [s["command"][0] for s in SERVICES.values() if "--server-id" in str(s.get("command"))]

    assert len(ids) == len(set(ids)) == 3


OF_THE_WHEEL = sorted(set(DOCKER.glob("*.Dockerfile")) - {DOCKER / "connect.Dockerfile"})


def read_by_the_command(words: list[str], tmp_path: Path) -> str:
    """The full name of the command that a call of ``shardmerge`` runs, its options being right."""
    file = tmp_path / "pipeline.toml"
    file.touch()
    words = [str(file) if word.endswith("pipeline.toml") else word for word in words]
    command: click.Command = main
    context = click.Context(main, info_name="shardmerge")
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(context, words)
        assert found is not None
        command, context = found, click.Context(found, context, name)
    command.parse_args(context, words)
    return context.command_path


@pytest.mark.parametrize("dockerfile", OF_THE_WHEEL, ids=lambda p: p.name)
def test_an_image_starts_a_command_of_the_wheel(dockerfile: Path, tmp_path: Path) -> None:
    text = dockerfile.read_text()
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

    entry, default = (
        json.loads(re.findall(rf"^{word} (\[.*\])$", text, re.MULTILINE)[-1])  # of the last stage
        for word in ("ENTRYPOINT", "CMD")
    )
    assert entry == [*scripts]
    part = dockerfile.name.removesuffix(".Dockerfile").replace("spark", "sink")
    assert read_by_the_command(default, tmp_path) == f"shardmerge {part}"
    assert "PYTHONSAFEPATH=1" in text
    assert "--require-hashes" in text


def test_the_watchdog_of_the_line_makes_the_connectors(tmp_path: Path) -> None:
    words = SERVICES["watchdog"]["command"]
    assert read_by_the_command(words, tmp_path) == "shardmerge connect watch"
    assert "--create" in words


def test_the_validator_of_the_line_compares_all_the_time(tmp_path: Path) -> None:
    words = SERVICES["validator"]["command"]
    assert read_by_the_command(words, tmp_path) == "shardmerge validate"
    assert "--continuous" in words


def test_the_sink_of_the_line_runs_the_sink(tmp_path: Path) -> None:
    words = SERVICES["sink"]["command"]
    assert read_by_the_command(words, tmp_path) == "shardmerge sink"


def test_the_unit_of_systemd_runs_a_pipeline_and_stops_its_parts_in_order(tmp_path: Path) -> None:
    unit = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DOCKER / "shardmerge@.service")
    service = unit["Service"]

    program, *words, further = service["ExecStart"].split()
    assert program.endswith("/bin/shardmerge")
    # systemd puts the words of the variable there, which an operator sets.
    assert further == "$RUN_OPTIONS"
    assert service["Environment"] == "RUN_OPTIONS="
    shown = re.search(r"RUN_OPTIONS=(--.+)", (DOCKER / "shardmerge@.service").read_text())
    assert shown is not None
    words += shown[1].split()
    assert read_by_the_command(words, tmp_path) == "shardmerge run"
    # Else systemd would end the sink's Spark before the sink.
    assert service["KillMode"] == "mixed"
    assert int(service["TimeoutStopSec"]) >= 3 * STOP_S


def test_the_connect_image_compiles_the_converter_and_says_that_it_is_there() -> None:
    text = (DOCKER / "connect.Dockerfile").read_text()
    assert "COPY connectors/java /java" in text
    assert f"echo {EXACT_VALUES_PLUGIN}" in text
    assert f"echo {NO_ROW_TWICE}" in text
    assert (ROOT / "connectors" / "java" / "ExactValues.java").is_file()
    assert SERVICES["connect"]["build"]["dockerfile"] == "docker/connect.Dockerfile"


def test_the_connect_image_has_the_exporter_that_is_tested_and_prometheus_reads_it() -> None:
    text = (DOCKER / "connect.Dockerfile").read_text()
    fetched = (ROOT / "local/install/ivy-jmx.xml").read_text()
    version = re.search(r'name="jmx_prometheus_javaagent" rev="([\d.]+)"', fetched)
    assert version is not None
    assert f":jmx_prometheus_javaagent:{version[1]} " in text
    [digest] = read_checksums((ROOT / "local/install/checksums-jmx.txt").read_text()).values()
    assert digest in text
    option = SERVICES["connect"]["environment"]["KAFKA_OPTS"]
    jar, port, rules = re.split("[=:]", option.removeprefix("-javaagent:"))
    assert {str(Path(jar).parent), str(Path(rules).parent)} == {"/kafka/jmx"}
    assert f"/jmx/{Path(jar).name} /kafka/jmx/" in text
    assert f"COPY docker/jmx/{Path(rules).name} /kafka/jmx/" in text
    scraped = yaml.safe_load((DOCKER / "prometheus" / "prometheus.yml").read_text())
    [target] = [j for j in scraped["scrape_configs"] if j["job_name"] == "connect"]
    assert target["static_configs"] == [{"targets": [f"connect:{port}"]}]


def test_every_port_of_metrics_that_prometheus_reads_is_the_one_of_its_service() -> None:
    scraped = yaml.safe_load((DOCKER / "prometheus" / "prometheus.yml").read_text())
    for job in scraped["scrape_configs"]:
        [address] = job["static_configs"][0]["targets"]
        service, _, port = address.partition(":")
        command = SERVICES[service].get("command", [])
        if "--metrics-port" in command:
            assert command[command.index("--metrics-port") + 1] == port


def test_the_docker_folder_holds_no_python() -> None:
    assert not list(DOCKER.rglob("*.py"))
