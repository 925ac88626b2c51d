"""The argument of the command ``renew``: which table takes a target's place."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.model.origin import Origin

from . import plain


@dataclass(frozen=True, slots=True)
class Renewal:
    """A rebuilt table, as the command that puts it in its target's place describes it, as JSON.

    Attributes:
        rebuild: Number of the rebuild in its pipeline.
        version: Of the target's latest decision that the table follows.
        origin: The table's origin columns.
    """

    rebuild: int
    version: int
    origin: Origin

    def __str__(self) -> str:
        return plain.dump(self).decode()

    @classmethod
    def read(cls, text: str) -> Renewal:
        """Parse a command's argument.

        Raises:
            ContractError: The text is not the JSON of a ``Renewal``.
        """
        return plain.load(cls, text.encode())
