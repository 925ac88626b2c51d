"""What a request tells about who sent it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.model.errors import ShardMergeError


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        address: The address from which the connection came: that of a proxy if there is one.
        headers: Name in lower case → its values, in the order in which they came.
        cookie: The value of the pages' own cookie; "" without one.
    """

    address: str
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cookie: str = ""

    def header(self, name: str) -> str:
        """The value of a header; "" if it is missing or came more than once."""
        values = self.headers.get(name.lower(), ())
        return values[0].strip() if len(values) == 1 else ""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who sent a request.

    Attributes:
        user: Name of the user; "" for nobody.
        session: What the keys of forms are made from: a random text that only the user's browser
            knows; "" where there is none, as with a token in a header.
        denied: Why this asker may give no commands; None for one who may.
    """

    user: str = ""
    session: str = ""
    denied: ShardMergeError | None = None

    @property
    def may_command(self) -> bool:
        """Whether this asker may give commands."""
        return self.denied is None
