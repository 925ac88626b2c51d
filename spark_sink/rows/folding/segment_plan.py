"""A segment, prepared for its rows: what their images look like, how to write them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from shardmerge.schemas.lattice.origin_columns import of_shard
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import OriginPart, group_of, origin_part
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.pipeline.row_conditions import (
    Condition,
    ConditionColumn,
    column_names,
    condition_on,
)
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import Segment, ShardStream
from shardmerge.spark_sink.rows.decoding.row_decoder import RowDecoder
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS, RowFormat
from shardmerge.spark_sink.rows.values.charset_repairs import has_spellings
from shardmerge.spark_sink.rows.values.column_values import UnfitValue
from shardmerge.spark_sink.rows.values.constant_values import (
    ConstantValue,
    added_value,
    group_constant,
)
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.rows.values.readers import Check, Reader, not_null_timestamps
from shardmerge.spark_sink.rows.values.times import moment_text

LimitsOf: TypeAlias = Callable[[ColumnType], Check | None]
"""A shard's type → finds values that the kind of target cannot hold; None when there are none."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a row cannot be applied, and what the operator can do.

    Attributes:
        collides: Whether another row of the target has the same value in a unique key.
        code: The reason's code in ``schemas.codes``.
    """

    reason: str
    hint: str
    collides: bool = False
    code: str = ""


class WrittenColumn(NamedTuple):
    """A shard column that the target has too.

    Attributes:
        place: Its index among the columns of the row image.
        image: Its name in row images.
        target: The target's column.
        type: On the shard.
        nullable: On the shard.
    """

    place: int
    image: str
    target: str
    reader: Reader
    type: ColumnType
    nullable: bool


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """How to read rows and how to write their columns.

    Attributes:
        shard: Whose rows they are.
        epoch: The source's epoch that the rows name.
        names: The column names that every row image must have, in column order.
        image: The same, as a set.
        key: Those of the primary key, in its order.
        decoder: Of the rows' records.
        key_of: Image → primary key, in one spelling for equal keys; None without one.
        key_names: The target's columns of the key.
        signature: Rows of segments with equal signatures have comparable keys.
        columns: The columns of the images that are written.
        origin: Target column and its value, for the origin columns that name the shard.
        position: Target column for the row's place in its source; "" if there is none.
        added: Target column and its value, for columns that the shard has got since.
        matches: Values of an image → whether the row is merged; None when every row is.
        refusal: Why no row of the segment can be applied; None when they can.
    """

    segment: Segment
    shard: ShardId
    epoch: int
    names: tuple[str, ...]
    image: frozenset[str]
    key: tuple[str, ...]
    decoder: RowDecoder
    key_of: Callable[[Any], Any] | None
    key_names: tuple[str, ...]
    signature: tuple[object, ...]
    columns: tuple[WrittenColumn, ...]
    origin: tuple[tuple[str, ConstantValue], ...]
    position: str
    added: tuple[tuple[str, ConstantValue], ...]
    matches: Condition | None
    refusal: Refusal | None


def plan_segment(
    stream: ShardStream,
    segment: Segment,
    bindings: Mapping[str, Binding],
    naming: int,
    rows: RowFormat = JSON_ROWS,
    *,
    epoch: int = 0,
    limits_of: LimitsOf | None = None,
) -> SegmentPlan:
    """Prepare a segment of rows.

    Args:
        stream: The shard's stream.
        segment: One of the stream's segments.
        bindings: Identity → target column.
        naming: Which spelling of names the images use: an index into ``RowFormat.image_names``.
        rows: The format of the records.
        epoch: The source's epoch that the rows name.
        limits_of: What the kind of target cannot hold, per type; None when it holds every value.
    """
    shard = stream.shard
    columns: list[WrittenColumn] = []
    shape: list[tuple[str, frozenset[type] | None]] = []
    bound: dict[str, str] = {}
    origin: list[tuple[str, ConstantValue]] = []
    position = ""
    refusal: Refusal | None = None
    for shard_column in segment.columns:
        name, kind = shard_column.column.name, shard_column.column.type
        if (part := origin_part(shard_column.id)) is not None:
            if (binding := bindings.get(shard_column.id)) is not None:
                bound[name.lower()] = binding.name
                if part is OriginPart.POSITION:
                    position = binding.name
                elif part is OriginPart.GROUP:
                    group = group_of(shard_column.id)
                    if (text := dict(stream.groups).get(group)) is None:
                        refusal = Refusal(
                            f"the route of {shard} gives no value to the origin column {name}: no "
                            f"expression has the group {group}, or its value does not fit",
                            "give the route in the sink's pipeline file the group that the target "
                            "began with",
                            code="SM-1525",
                        )
                    else:
                        origin.append((binding.name, group_constant(kind, text)))
                else:
                    origin.append((binding.name, ConstantValue(Form.TEXT, part.value_in(shard))))
            continue
        place, image = len(shape), rows.image_names(name)[naming]
        accepts = None
        binding = bindings.get(shard_column.id)
        if binding is not None and binding.name and binding.writable:
            bound[name.lower()] = binding.name
            try:
                how = _reader(shard_column.column, rows, limits_of)
            except UnfitValue as error:
                hint = error.hint or "drop the column on the shard"
                refusal = Refusal(f"column {name}: {error.message}", hint, code=error.code)
            else:
                if lost := rows.loses(shard_column.column):
                    refusal = Refusal(
                        f"column {name}: {lost}",
                        "make the column NOT NULL or drop its default on the shard, or let "
                        "Confluent's converter or JSON's write the rows (avro_converter, "
                        "row_format), with a new snapshot",
                        code="SM-1510",
                    )
                nullable = shard_column.column.nullable
                columns.append(WrittenColumn(place, image, binding.name, how, kind, nullable))
                accepts = how.accepts
        shape.append((image, accepts))
    if not segment.live:
        refusal = Refusal(
            "the row stands after its table was dropped",
            "take a new snapshot of the shard",
            code="SM-1511",
        )
    elif missing := [k for k in segment.key if k.lower() not in bound]:
        refusal = Refusal(
            f"primary-key column {missing[0]} of the shard is not in the target",
            "give the target a column for it",
            code="SM-1512",
        )
    own = of_shard(segment.columns)
    matches = None
    if stream.where and refusal is None:
        try:
            matches = _matcher(stream.where, own, rows)
        except (UnsupportedDDL, UnfitValue) as error:
            refusal = Refusal(
                error.message, error.hint or "change where in the shard's route", code=error.code
            )
    by_name = {c.column.name.lower(): c for c in own}
    keys = [by_name[k.lower()] for k in segment.key if k.lower() in by_name]
    names = tuple(image for image, _ in shape)
    key_names = tuple(rows.image_names(c.column.name)[naming] for c in keys)
    decoder = rows.decoder(shard, tuple(shape), key_names, epoch)
    return SegmentPlan(
        segment,
        shard,
        epoch,
        names,
        frozenset(names),
        key_names,
        decoder,
        _in_one_spelling(decoder.key_of, key_names, columns),
        tuple(bound.get(k.lower(), "") for k in segment.key),
        tuple((c.id, c.column.type.name, c.column.type.scale) for c in keys),
        tuple(columns),
        tuple(origin),
        position,
        tuple(
            (binding.name, value)
            for c in segment.added
            if (binding := bindings.get(c.id)) is not None
            and binding.name
            and binding.writable
            and (value := added_value(c)) is not None
        ),
        matches,
        refusal,
    )


def _in_one_spelling(
    key_of: Callable[[Any], Any] | None, names: Sequence[str], columns: Sequence[WrittenColumn]
) -> Callable[[Any], Any] | None:
    """Image → primary key, where Debezium may spell a text of the key in several ways."""
    respelled = {c.image: c.reader for c in columns if c.image in names and has_spellings(c.type)}
    if key_of is None or not respelled:
        return key_of
    readers = [respelled.get(name) for name in names]

    def found(image: Any) -> Any:
        key = key_of(image)
        parts = (key,) if len(readers) == 1 else key
        read = tuple(map(_as_read, readers, parts))
        return read[0] if len(readers) == 1 else read

    return found


def _as_read(how: Reader | None, value: Any) -> Any:
    if how is None:
        return value
    try:
        return how.read([value])[0]
    except UnfitValue:
        return value  # conversion refuses the row, with the reason


def _matcher(where: str, columns: Sequence[ShardColumn], rows: RowFormat) -> Condition:
    """The condition on images with these columns; raises ``UnsupportedDDL``."""
    places = {c.column.name.lower(): n for n, c in enumerate(columns)}
    if missing := [name for name in column_names(where) if name not in places]:
        raise UnsupportedDDL(
            f"where names {', '.join(missing)}, which the shard does not have here",
            hint="let the condition of the route name columns that all of its shards have",
            code="SM-1513",
        )
    named = {}
    for name in column_names(where):
        column = columns[places[name]].column
        text_of = partial(_text_of, _reader(column, rows))
        named[name] = ConditionColumn(places[name], column.type, text_of)
    return condition_on(where, named)


def _reader(column: Column, rows: RowFormat, limits_of: LimitsOf | None = None) -> Reader:
    how = rows.reader(column.type, limits_of(column.type) if limits_of else None)
    if column.type.name == "timestamp" and not column.nullable:
        return not_null_timestamps(how)
    return how


def _text_of(how: Reader, value: Any) -> str | None:
    return moment_text(how.form, how.read([value])[0])
