"""Makes our topics before anything reads or writes them, checks those that exist, deletes some."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from shardmerge.connectors.access.kafka import admin_client, check_admitted, client_error
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.pipeline.topics import TopicSpec

_TIMEOUT_S = 30.0
_POLICY = "cleanup.policy"


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic as Kafka describes it, with every setting in force."""

    name: str
    partitions: int
    settings: Mapping[str, str]


def describe_topics(kafka: Kafka, timeout_s: float = _TIMEOUT_S) -> Mapping[str, FoundTopic]:
    """Every topic by name; Kafka's internal ones are left out.

    Raises:
        StackError: Kafka cannot be reached, or does not tell.
    """
    client = _admitted(kafka)
    try:
        known = client.list_topics(timeout=timeout_s).topics
        names = [name for name in known if not name.startswith("__")]
        settings = _settings(client, names, timeout_s)
    except KafkaException as error:
        raise client_error(kafka, error) from None
    return {name: FoundTopic(name, len(known[name].partitions), settings[name]) for name in names}


def has_topic(kafka: Kafka, name: str, timeout_s: float = _TIMEOUT_S) -> bool:
    """Whether a topic exists that the user may see.

    Raises:
        StackError: Kafka cannot be reached.
    """
    try:
        return name in _admitted(kafka).list_topics(timeout=timeout_s).topics
    except KafkaException as error:
        raise client_error(kafka, error) from None


def create_topics(
    kafka: Kafka, specs: Iterable[TopicSpec], timeout_s: float = _TIMEOUT_S
) -> tuple[str, ...]:
    """Make the topics that are missing, check the others, and wait until every partition leads.

    Safe to call again and from several processes at once.

    Args:
        kafka: Whose brokers.
        specs: What must exist.
        timeout_s: Bound of each wait.

    Returns:
        Names of the topics that were made by this call.

    Raises:
        StackError: Kafka cannot be reached, refuses a topic, or has one with another number of
            partitions or another clean-up policy.
    """
    wanted = {spec.name: spec for spec in specs}
    client = _admitted(kafka)
    try:
        existing = client.list_topics(timeout=timeout_s).topics
        missing = [spec for name, spec in wanted.items() if name not in existing]
        made = _create(client, missing, timeout_s)
        _wait_for_leaders(client, wanted, timeout_s)
        _check_policies(
            client, [spec for spec in wanted.values() if spec.name not in made], timeout_s
        )
    except KafkaException as error:
        raise client_error(kafka, error) from None
    return made


def delete_topics(
    kafka: Kafka,
    are_wanted: Callable[[Iterable[str]], Iterable[str]],
    timeout_s: float = _TIMEOUT_S,
) -> tuple[str, ...]:
    """Delete topics; one that is gone meanwhile is no error.

    Args:
        kafka: Whose brokers.
        are_wanted: Names of all topics → those to delete.
        timeout_s: Bound of each wait.

    Returns:
        Names of the topics that were deleted.

    Raises:
        StackError: Kafka cannot be reached, or refuses.
    """
    client = _admitted(kafka)
    try:
        names = list(are_wanted(client.list_topics(timeout=timeout_s).topics))
        if not names:
            return ()
        for name, future in client.delete_topics(names, operation_timeout=timeout_s).items():
            try:
                future.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise StackError(
                        f"Kafka does not delete topic {name}: {error.args[0].str()}", code="SM-4106"
                    ) from None
    except KafkaException as error:
        raise client_error(kafka, error) from None
    return tuple(names)


def _admitted(kafka: Kafka) -> AdminClient:
    """A client, once it is known that the brokers do not refuse it."""
    check_admitted(kafka)
    return admin_client(kafka)


def _create(client: AdminClient, specs: list[TopicSpec], timeout_s: float) -> tuple[str, ...]:
    if not specs:
        return ()
    topics = [
        NewTopic(
            s.name,
            num_partitions=s.partitions,
            replication_factor=s.replication,
            config=dict(s.config),
        )
        for s in specs
    ]
    made = []
    for name, future in client.create_topics(topics, operation_timeout=timeout_s).items():
        try:
            future.result()
        except KafkaException as error:
            # Another process made it in the meantime: it is checked like any existing one.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise StackError(
                    f"Kafka refuses topic {name}: {error.args[0].str()}", code="SM-4106"
                ) from None
        else:
            made.append(name)
    return tuple(made)


def _wait_for_leaders(client: AdminClient, wanted: dict[str, TopicSpec], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        topics = client.list_topics(timeout=timeout_s).topics
        waiting = [
            name
            for name in wanted
            if name not in topics
            or topics[name].error
            or any(p.leader < 0 for p in topics[name].partitions.values())
        ]
        if not waiting:
            break
        if time.monotonic() > deadline:
            raise StackError(
                f"topic {waiting[0]} has no leader after {timeout_s:.0f} s",
                hint="see the brokers' logs",
                code="SM-4103",
            )
        time.sleep(0.05)
    for name, spec in wanted.items():
        if (found := len(topics[name].partitions)) != spec.partitions:
            raise StackError(
                f"topic {name} has {found} partitions instead of {spec.partitions}",
                hint="delete it if nothing needs its records: their order is lost otherwise",
                code="SM-4104",
            )


def _check_policies(client: AdminClient, specs: list[TopicSpec], timeout_s: float) -> None:
    checked = [spec for spec in specs if _POLICY in spec.config]
    if not checked:
        return
    settings = _settings(client, [spec.name for spec in checked], timeout_s)
    found = {name: values[_POLICY] for name, values in settings.items()}
    for spec in checked:
        if found[spec.name] != spec.config[_POLICY]:
            raise StackError(
                f"topic {spec.name} has {_POLICY}={found[spec.name]}, not {spec.config[_POLICY]}",
                hint=f"kafka-configs.sh --alter --entity-type topics --entity-name {spec.name} "
                f"--add-config {_POLICY}={spec.config[_POLICY]}",
                code="SM-4105",
            )


def _settings(
    client: AdminClient, names: Iterable[str], timeout_s: float
) -> dict[str, dict[str, str]]:
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    if not resources:
        return {}
    answers = client.describe_configs(resources, request_timeout=timeout_s)
    return {
        resource.name: {name: entry.value for name, entry in future.result().items()}
        for resource, future in answers.items()
    }
