"""The sessions that users ended before their time. Pure.

A session is a signed text, which nobody stores. So a copy of the text would count until its time is
over. A worker that knows the ended sessions accepts no copy of them.
"""

from __future__ import annotations

from hashlib import sha256


class EndedSessions:
    """Ended sessions, by a digest of their nonce, until their time would be over anyway."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def add(self, digest: str, expires_s: float, now_s: float) -> None:
        """Note an ended session, and forget those whose time is over.

        Args:
            digest: See ``digest_of``.
            expires_s: When no copy of it counts any more, in seconds since 1970.
            now_s: The present time in seconds since 1970.
        """
        over = [each for each, until in self._until.items() if until <= now_s]
        for each in over:
            del self._until[each]
        if expires_s > now_s:
            self._until[digest] = expires_s

    def has(self, nonce: str) -> bool:
        """Whether the session with this nonce was ended."""
        return digest_of(nonce) in self._until

    def __len__(self) -> int:
        return len(self._until)


def digest_of(nonce: str) -> str:
    """What other workers learn of an ended session: nobody can make a cookie from it."""
    return sha256(nonce.encode()).hexdigest()
