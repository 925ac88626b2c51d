"""Connectors in the form of Strimzi's resources."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.connectors.debezium.connector_resources import (
    connector_resource,
    helm_values,
    manifests,
)
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.settings import Pipeline
from tests.recorded import pipeline


def guarded() -> Pipeline:
    """A pipeline whose sources' passwords are references."""
    given = pipeline()
    return replace(
        given,
        name="shop",
        sources=tuple(replace(s, password="env:SOURCE_PASSWORD") for s in given.sources),
    )


def test_a_resource_has_every_property_of_the_connector_once() -> None:
    given = guarded()
    for source in given.sources:
        found = connector_resource(given, source)
        again = {
            **found.config,
            "connector.class": found.connector_class,
            "tasks.max": str(found.tasks_max),
        }
        assert again == connector_config(given, source)


def test_the_values_of_the_chart_and_the_manifests_say_the_same() -> None:
    given = guarded()
    found = tuple(connector_resource(given, source) for source in given.sources)
    listed = helm_values(found)["strimzi"]["connectors"]
    made = manifests(found, "line")
    assert [each["metadata"] for each in made] == [
        {"name": each["name"], "labels": {"strimzi.io/cluster": "line"}} for each in listed
    ]
    assert [each["spec"] for each in made] == [
        {key: value for key, value in each.items() if key != "name"} for each in listed
    ]
    assert all(each["config"]["database.password"] == "${env:SOURCE_PASSWORD}" for each in listed)


@pytest.mark.parametrize("name", ["Shop", "shop_eu", "-shop", "s" * 260])
def test_a_name_that_kubernetes_does_not_take_is_refused(name: str) -> None:
    given = replace(guarded(), name=name)
    with pytest.raises(ConfigError) as refused:
        connector_resource(given, given.sources[0])
    assert refused.value.code == "SM-7101"


def test_a_password_in_the_pipeline_file_is_not_printed() -> None:
    given = guarded()
    source = replace(given.sources[0], password="swordfish")
    with pytest.raises(ConfigError) as refused:
        connector_resource(given, source)
    assert refused.value.code == "SM-7102"
    assert "database.password" in str(refused.value)
    assert "swordfish" not in str(refused.value)
