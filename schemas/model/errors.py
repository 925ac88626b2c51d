"""The exception tree. Each error says what, where, and what the operator can do (``hint``).

Each error has a stable code, such as ``SM-1203``. ``schemas.codes`` says of every code what it
means; a test proves that every raise names a code of that registry.

::

    ShardMergeError
    ├── SourceError                a source sent something that cannot be honoured
    │   ├── UnparsableDDL          the text is not DDL that the grammar knows
    │   └── UnsupportedDDL         parsed, but its effect cannot be tracked
    ├── ContractError              a topic holds what its contract forbids
    │   ├── UnknownSchemaVersion   a record's schema fingerprint is not known here
    │   └── BarrierRegressed       a high watermark went back: the topic was created anew
    ├── TargetError                the target refused a statement or a row
    │   ├── TargetClosed           the sink may not change the target now
    │   └── TargetLost             this process can do nothing more with the target
    │       ├── StateReplaced      a rebuilt table took a target's place
    │       └── WriterReplaced     another writer has the pipeline now
    ├── StackError                 Kafka, Connect or the local stack is not in the required state
    ├── ConfigError                the settings are wrong; raised only at start
    ├── AccessDenied               the user may not do on the pages what was asked for
    └── InternalError              an invariant of our own is broken; never caught

A conflict between shards is not an exception: it is a value, see ``lattice.joined.Conflict``.
"""

from __future__ import annotations

UNCODED = "SM-9001"
"""The code of an error that was raised without one."""


class ShardMergeError(Exception):
    """Root of every error that this distribution raises on purpose.

    Attributes:
        message: What was seen, and where; without the code and the hint.
        hint: What the operator can do; "" when the message says it all.
        code: The error's code in ``schemas.codes``.
    """

    def __init__(self, message: str, *, hint: str = "", code: str = UNCODED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text


class SourceError(ShardMergeError):
    """A source sent something that cannot be honoured; only its shard is held."""


class UnparsableDDL(SourceError):
    """The text is not DDL that the grammar knows.

    Attributes:
        sql: The whole statement.
        offset: Index of the character where parsing stopped.
    """

    def __init__(self, message: str, sql: str, offset: int, *, code: str = UNCODED) -> None:
        super().__init__(message, code=code)
        self.sql = sql
        self.offset = offset

    def caret(self) -> str:
        """The line of the error with a caret under the place."""
        start = self.sql.rfind("\n", 0, self.offset) + 1
        end = self.sql.find("\n", self.offset)
        line = self.sql[start : end if end != -1 else None]
        return f"{line}\n{' ' * (self.offset - start)}^"


class UnsupportedDDL(SourceError):
    """The statement was parsed, but its effect on a schema cannot be tracked."""


class ContractError(ShardMergeError):
    """A topic holds what its contract forbids."""


class UnknownSchemaVersion(ContractError):
    """A record's Avro schema fingerprint is not one of this version's or an earlier one's."""


class BarrierRegressed(ContractError):
    """A high watermark is lower than before: the topic was deleted and created anew."""


class TargetError(ShardMergeError):
    """The target refused a statement or a row.

    Attributes:
        number: The server's error number, 0 when there is none.
        statement: What was refused.
        retryable: Whether the same statement may succeed when repeated as it is.
    """

    def __init__(
        self,
        message: str,
        *,
        number: int = 0,
        statement: str = "",
        retryable: bool = False,
        hint: str = "",
        code: str = UNCODED,
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.number = number
        self.statement = statement
        self.retryable = retryable


class TargetClosed(TargetError):
    """The target was cut over, or a rebuilt table takes its place: the sink may not change it.

    It is ``retryable``: the target can be opened again.
    """


class TargetLost(TargetError):
    """This process can do nothing more with the target, and ends.

    The error says nothing about the statement or the row: another process may succeed with it.
    """


class StateReplaced(TargetLost):
    """A rebuilt table took a target's place: what the sink remembers of the target is not true.

    The sink reads its state from the target again.
    """


class WriterReplaced(TargetLost):
    """Another writer has the pipeline now: it took the next epoch, or moved an offset."""


class StackError(ShardMergeError):
    """Kafka, Kafka Connect or the embedded stack is not in the required state."""


class ConfigError(ShardMergeError):
    """A setting is missing, unknown or wrong."""


class AccessDenied(ShardMergeError):
    """The user may not do on the pages what was asked for."""


class InternalError(ShardMergeError):
    """An invariant of our own is broken."""
