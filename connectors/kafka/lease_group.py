"""The consumer group in Kafka whose only partition tells which sink writes.

It serves targets whose servers keep no lock for a connection. Whoever can ask Kafka can see where
these sinks run.
"""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from shardmerge.connectors.access.kafka import client_error
from shardmerge.connectors.access.lease_names import STANDBYS, Sinks
from shardmerge.schemas.pipeline.settings import Kafka

from .group_members import group_members

_ANSWER_S = 5.0


def lease_group(pipeline: str) -> str:
    """The group of a pipeline's sinks."""
    return f"shardmerge-sink-lease.{pipeline}"


def sinks_in_group(kafka: Kafka, admin: AdminClient, group: str) -> Sinks:
    """Where the sink runs that has the partition, and where others wait for it.

    Args:
        kafka: The brokers.
        admin: Asks them.
        group: The group's name.

    Raises:
        StackError: Kafka does not answer.
    """
    try:
        members = group_members(admin, group, _ANSWER_S)
    except KafkaException as error:
        raise client_error(kafka, error, f"the group {group}") from error
    hosts: dict[bool, list[str]] = {True: [], False: []}
    for member in members:
        writes = member.assignment is not None and bool(member.assignment.topic_partitions)
        hosts[writes].append(member.host.lstrip("/"))
    return Sinks("".join(hosts[True][:1]), tuple(sorted(hosts[False])[:STANDBYS]))
