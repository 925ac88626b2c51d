"""Who is in a consumer group."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, MemberDescription


def group_members(admin: AdminClient, group: str, timeout_s: float) -> Sequence[MemberDescription]:
    """The members of a group; none before the first one joined it.

    Args:
        admin: Asks the brokers.
        group: The group's name.
        timeout_s: Longest wait for the brokers' answer.

    Raises:
        KafkaException: The brokers do not answer, or refuse the question.
    """
    asked = admin.describe_consumer_groups([group], request_timeout=timeout_s)
    try:
        members: Sequence[MemberDescription] = asked[group].result(2 * timeout_s).members
    except KafkaException as error:
        if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return ()
        raise
    return members
