"""What `helm install` with `--set-file` does, its notes, `helm lint` and `helm package`."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest
import yaml

from shardmerge.schemas.pipeline.file import parse_pipeline
from tests.chart.rendering import BY_WATCHDOG, CHART, GIVEN, ROOT, faults, helm, rendered
from tests.unit.test_docker import read_by_the_command

DOCUMENTED = ROOT / "docker" / "pipeline.toml"
STRIMZI = ("-f", str(CHART / "ci" / "strimzi.yaml"))


def _installed(file: Path) -> str:
    """The pipeline file that the pods get."""
    manifests = rendered("-set-file", f"pipeline={file}")
    assert faults(manifests) == ""
    [config] = [each["data"] for each in manifests if each["kind"] == "ConfigMap"]
    text: str = config["pipeline.toml"]
    return text


def test_the_documented_pipeline_file_comes_to_the_pods_as_it_is() -> None:
    text = DOCUMENTED.read_text()
    found = _installed(DOCUMENTED)
    assert found == text
    env = {"MYSQL_ROOT_PASSWORD": "x"}
    assert parse_pipeline(found, env) == parse_pipeline(text, env)


@pytest.mark.parametrize(
    "text",
    [
        '  # indented\n[pipeline]\nname = "x"\n',
        '\n\n  [pipeline]\nname = "x"\n',
        '[pipeline]\nname = """a\n    b\n"""\n',
        "name = \"{{ .Values.logFormat }}: '#' \\u00e9 é\"\n",
        "# no line end",
    ],
)
def test_a_pipeline_file_of_any_form_stays_what_it_is(text: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    file.write_text(text, encoding="utf-8")
    assert _installed(file).rstrip("\n") == text.rstrip("\n")


def test_a_file_counts_more_than_other_values() -> None:
    words = ("-f", str(CHART / "ci" / "smallest.yaml"), "-set", "pipeline=x")
    manifests = rendered(*words, "-set-file", f"pipeline={DOCUMENTED}")
    [config] = [each["data"] for each in manifests if each["kind"] == "ConfigMap"]
    assert config["pipeline.toml"] == DOCUMENTED.read_text()


def _notes(*words: str) -> str:
    found = helm(*words, "-notes")
    assert found.returncode == 0, found.stderr
    assert "<no value>" not in found.stdout
    return found.stdout


@pytest.mark.parametrize("values", GIVEN, ids=lambda path: path.stem)
def test_the_notes_name_a_service_and_a_port_that_are_there(values: Path) -> None:
    notes = _notes("-f", str(values))
    named = re.findall(
        r"^  kubectl --namespace (\S+) port-forward service/(\S+) (\d+)$", notes, re.M
    )
    services = {
        (each["metadata"]["name"], str(port["port"]))
        for each in rendered("-f", str(values))
        if each["kind"] == "Service"
        for port in each["spec"]["ports"]
    }
    [(namespace, *service)] = named
    assert namespace == "default"
    assert tuple(service) in services


def test_the_notes_name_the_addresses_that_strimzi_gives() -> None:
    """Strimzi 1.2.0: ``NAME-kafka-bootstrap`` and ``NAME-connect-api``."""
    notes = _notes(*STRIMZI)
    manifests = {each["kind"]: each for each in rendered(*STRIMZI)}
    bootstrap = manifests["KafkaConnect"]["spec"]["bootstrapServers"]
    assert f'bootstrap_servers = "{bootstrap}"' in notes
    name = manifests["KafkaConnect"]["metadata"]["name"]
    assert f'url = "http://{name}-connect-api:8083"' in notes
    copies = manifests["KafkaConnect"]["spec"]["config"]["config.storage.replication.factor"]
    assert f"replication = {copies} in [kafka]" in notes
    assert "connect prepare" not in notes


def test_the_notes_name_a_command_that_is_there(connectors: Path, tmp_path: Path) -> None:
    notes = _notes(*STRIMZI, "-f", str(connectors), *BY_WATCHDOG)
    [words] = re.findall(r"^  shardmerge (.+)$", notes, re.M)
    call = words.replace("FILE", str(tmp_path / "pipeline.toml")).split()
    assert read_by_the_command(call, tmp_path) == "shardmerge connect prepare"


@pytest.mark.parametrize("values", GIVEN, ids=lambda path: path.stem)
def test_helm_lint_finds_no_fault(values: Path) -> None:
    found = helm("-f", str(values), "-lint")
    assert found.returncode == 0, found.stderr
    # It advises a picture for catalogues of charts.
    assert found.stdout.splitlines() == ["[INFO] Chart.yaml: icon is recommended"]


def test_helm_lint_finds_a_fault() -> None:
    assert "[ERROR]" in helm("-set", "pipeline=x", "-set", "agents.replica=1", "-lint").stdout


def test_a_package_of_the_chart_renders_as_its_folder_does(tmp_path: Path) -> None:
    """With the file that is a link out of the folder."""
    made = helm("-package", str(tmp_path))
    assert made.returncode == 0, made.stderr
    package = made.stdout.strip()
    with tarfile.open(package) as archive:
        names = archive.getnames()
    assert not [name for name in names if "/ci/" in name]
    found = helm(*STRIMZI, chart=package)
    assert found.returncode == 0, found.stderr
    assert [e for e in yaml.safe_load_all(found.stdout) if e] == rendered(*STRIMZI)
