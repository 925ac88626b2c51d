"""A segment, prepared for its rows: what their images look like, how to write them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from shardmerge.schemas.events import Binding

from .columns import Encoder, UnfitValue, encoder
from .fills import Fill, fill_of
from .ranges import Segment
from .row_envelope import image_names


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a row cannot be applied, and what the operator can do."""

    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """How to read a row's key and how to write its columns.

    Attributes:
        image: The names that every row image must have.
        key_of: Image → primary key; None without one.
        key_names: The target's columns of the key.
        signature: Rows of segments with equal signatures have comparable keys.
        columns: Name in the image, target column, encoder.
        fills: Target column and its value, for columns that no image has.
        types: The shard's type name of each of ``columns``.
        refusal: Why no row of the segment can be applied; None when they can.
    """

    segment: Segment
    image: frozenset[str]
    key_of: itemgetter[Any] | None
    key_names: tuple[str, ...]
    signature: tuple[object, ...]
    columns: tuple[tuple[str, str, Encoder], ...]
    types: tuple[str, ...]
    fills: tuple[tuple[str, Fill], ...]
    refusal: Refusal | None


def plan_segment(segment: Segment, bindings: Mapping[str, Binding], naming: int) -> SegmentPlan:
    """Prepare a segment; ``naming``: which of Debezium's spellings its images use."""
    columns: list[tuple[str, str, Encoder]] = []
    types: list[str] = []
    bound: dict[str, str] = {}
    refusal: Refusal | None = None
    by_name = {c.column.name.lower(): c for c in segment.columns}
    for shard_column in segment.columns:
        binding = bindings.get(shard_column.id)
        if binding is None or not binding.name or not binding.writable:
            continue
        name = shard_column.column.name
        bound[name.lower()] = binding.name
        try:
            columns.append(
                (image_names(name)[naming], binding.name, encoder(shard_column.column.type))
            )
            types.append(shard_column.column.type.name)
        except UnfitValue as error:
            refusal = Refusal(f"column {name}: {error.message}", "drop the column on the shard")
    if not segment.live:
        refusal = Refusal(
            "the row stands after its table was dropped", "take a new snapshot of the shard"
        )
    elif missing := [k for k in segment.key if k.lower() not in bound]:
        refusal = Refusal(
            f"primary-key column {missing[0]} of the shard is not in the target",
            "give the target a column for it",
        )
    keys = [by_name[k.lower()] for k in segment.key if k.lower() in by_name]
    return SegmentPlan(
        segment,
        frozenset(image_names(c.column.name)[naming] for c in segment.columns),
        itemgetter(*(image_names(c.column.name)[naming] for c in keys)) if keys else None,
        tuple(bound.get(k.lower(), "") for k in segment.key),
        tuple((c.id, c.column.type.name, c.column.type.scale) for c in keys),
        tuple(columns),
        tuple(types),
        tuple(
            (binding.name, fill)
            for c in segment.added
            if (binding := bindings.get(c.id)) is not None
            and binding.name
            and binding.writable
            and (fill := fill_of(c)) is not None
        ),
        refusal,
    )
