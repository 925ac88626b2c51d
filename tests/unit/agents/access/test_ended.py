from __future__ import annotations

from shardmerge.agents.access.ended import EndedSessions, digest_of


def test_an_ended_session_is_known_by_its_nonce_until_its_time_is_over():
    ended = EndedSessions()
    ended.add(digest_of("n0nce"), 100.0, 10.0)
    assert ended.has("n0nce")
    assert not ended.has("other")
    ended.add(digest_of("other"), 150.0, 120.0)
    assert (ended.has("n0nce"), ended.has("other"), len(ended)) == (False, True, 1)


def test_what_is_over_already_is_not_kept():
    ended = EndedSessions()
    ended.add(digest_of("n0nce"), 100.0, 100.0)
    assert len(ended) == 0


def test_the_digest_does_not_tell_the_nonce():
    assert "n0nce" not in digest_of("n0nce")
