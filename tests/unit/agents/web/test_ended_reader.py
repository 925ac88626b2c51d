from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from shardmerge.agents.access.ended import digest_of
from shardmerge.agents.access.sessions import SESSION_S
from shardmerge.agents.web.ended_reader import EndedReader
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.pipeline.web import TOKEN
from tests.example_pages import pipeline


def reader(told: list[tuple[str, int]], *, fails: bool = False) -> EndedReader:
    def tell(digest: str, expires_s: int) -> None:
        told.append((digest, expires_s))
        if fails:
            raise StackError("no answer", code="SM-6914")

    return EndedReader(Kafka("kafka:9092"), "p.ended-sessions", tell, lambda: 1_000.0)


def test_a_session_that_ends_here_ends_at_once_and_is_told():
    told: list[tuple[str, int]] = []
    here = reader(told)
    asyncio.run(here.end("n0nce"))
    assert here.has("n0nce")
    assert told == [(digest_of("n0nce"), 1_000 + SESSION_S)]
    other = reader([])
    other.take_record(told[0][0].encode(), str(told[0][1]).encode())
    assert other.has("n0nce")


def test_a_session_has_ended_here_although_nobody_could_be_told():
    here = reader([], fails=True)
    with pytest.raises(StackError):
        asyncio.run(here.end("n0nce"))
    assert here.has("n0nce")


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"-1", b"9" * 21])
def test_a_record_of_somebody_else_changes_nothing(value):
    here = reader([])
    here.take_record(digest_of("n0nce").encode(), value)
    here.take_record(None, b"99999")
    assert not here.has("n0nce")


def test_the_topic_exists_only_where_users_sign_in():
    of = pipeline()
    assert topics.page_topics(of) == (topics.validations(of),)
    [_, spec] = topics.page_topics(replace(of, web=replace(of.web, commands=TOKEN)))
    assert spec.name == f"{of.name}.ended-sessions"
    assert int(spec.config["retention.ms"]) > SESSION_S * 1000
