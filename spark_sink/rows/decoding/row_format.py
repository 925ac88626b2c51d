"""The formats of row records in Kafka, and what the fold needs to know of a format. Pure."""

from __future__ import annotations

from typing import Protocol

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.values.readers import Check, Reader, reader

from .row_decoder import RowDecoder, Shape, row_decoder
from .row_envelope import Names, RowRecord, decode_row, image_names, names_of


class RowFormat(Protocol):
    """A format of row records."""

    def decode(self, value: bytes) -> RowRecord:
        """Decode a record's value as a whole.

        Raises:
            UndecodableRow: It is no row record in this format.
            StackError: Its schema cannot be had now.
        """
        ...

    def names_of(self, value: bytes) -> Names | None:
        """The shard of a record, reading nothing else of it; None when it does not say."""
        ...

    def image_names(self, column: str) -> tuple[str, str]:
        """The spellings of a column's name in row images; see ``row_envelope.image_names``."""
        ...

    def reader(self, column_type: ColumnType, check: Check | None = None) -> Reader:
        """The reader of a column's values; raises ``UnfitValue`` for an unknown type."""
        ...

    def decoder(
        self, shard: ShardId, columns: Shape, key: tuple[str, ...], epoch: int
    ) -> RowDecoder:
        """The quick decoder of rows with exactly these columns; see ``row_decoder``."""
        ...

    def loses(self, column: Column) -> str:
        """Which values of a column the format changes, as text for people; "" for none."""
        ...


class JsonRows:
    """Debezium's JSON; each record shows whether it has Connect's embedded schema."""

    def decode(self, value: bytes) -> RowRecord:
        """See ``RowFormat``."""
        return decode_row(value)

    def names_of(self, value: bytes) -> Names | None:
        """See ``RowFormat``."""
        return names_of(value)

    def image_names(self, column: str) -> tuple[str, str]:
        """See ``RowFormat``."""
        return image_names(column)

    def reader(self, column_type: ColumnType, check: Check | None = None) -> Reader:
        """See ``RowFormat``."""
        return reader(column_type, check=check)

    def decoder(
        self, shard: ShardId, columns: Shape, key: tuple[str, ...], epoch: int
    ) -> RowDecoder:
        """See ``RowFormat``."""
        return row_decoder(shard, columns, key, epoch)

    def loses(self, column: Column) -> str:
        """See ``RowFormat``."""
        return ""


JSON_ROWS = JsonRows()
