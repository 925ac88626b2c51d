"""What the pages show, as plain JSON values. Pure."""

from __future__ import annotations

from typing import Any

from shardmerge.schemas.records.plain import to_plain

from .matrix import Matrix
from .view import StatusView, TargetView

RECENT = 20
"""Decisions of each target in the status of all; a target's own tells all that are kept."""


def status_json(view: StatusView, pipeline: str, caught_up: bool) -> dict[str, Any]:
    """All targets, and what was ignored."""
    return {
        "pipeline": pipeline,
        "caught_up": caught_up,
        "targets": [target_json(t, RECENT) for t in view.targets()],
        "ignored": [to_plain(d) for d in view.ignored()[:RECENT]],
    }


def target_json(target: TargetView, decisions: int | None = None) -> dict[str, Any]:
    """One target."""
    return {
        "target": str(target.target),
        "version": target.version,
        "columns": [
            {
                "name": c.name,
                "definition": c.definition,
                "id": c.id,
                "partial": c.partial,
                "missing_on": [str(s) for s in c.missing_on],
            }
            for c in target.columns
        ],
        "shards": [
            {
                "shard": str(s.shard),
                "state": s.state,
                "version": s.version,
                "position": str(s.position),
                "reason": s.reason,
                "hint": s.hint,
                "code": s.code,
            }
            for s in target.shards
        ],
        "decisions": [to_plain(d) for d in target.decisions[:decisions]],
        "progress": to_plain(target.progress),
    }


def matrix_json(found: Matrix) -> dict[str, Any]:
    """A target's shards and columns."""
    return {
        "columns": [
            {
                "name": column.name,
                "id": column.id,
                "definition": column.definition,
                "counts": {cell.value: count for cell, count in sorted(column.counts.items())},
            }
            for column in found.columns
        ],
        "alike": list(found.alike),
        "groups": [
            {
                "state": row.state,
                "shards": [str(shard) for shard in row.shards],
                "cells": [{"kind": cell.kind.value, "text": cell.text} for cell in row.cells],
            }
            for row in found.rows
        ],
        "group_count": found.row_count,
        "page": found.page,
        "pages": found.pages,
        "found": found.found,
        "total": found.total,
    }
