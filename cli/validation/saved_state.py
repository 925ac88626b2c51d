"""Keeps the state of a comparison in a file, so that the next call goes on from there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from shardmerge.schemas.model.errors import ConfigError, ContractError
from shardmerge.schemas.records.plain import dump, load
from shardmerge.spark_sink.validation.doubts import Difference, Doubt
from shardmerge.spark_sink.validation.proofs import digest_of
from shardmerge.spark_sink.validation.table_validation import TableValidation

from .validation_meter import KnownDifference


@dataclass(frozen=True, slots=True)
class SavedTarget:
    """How far the comparison of one target is; see ``TableValidation``.

    Attributes:
        key: The key's columns.
        compared: A digest of what is compared; with another one the comparison begins anew.
        done: Whether nothing is left to do.
    """

    target: str
    key: tuple[str, ...]
    after: tuple[str, ...]
    scanned: bool
    done: bool
    ranges: int
    rows: int
    doubts: tuple[tuple[str, ...], ...]
    differences: tuple[Difference, ...]
    unsettled: tuple[tuple[str, ...], ...]
    compared: str = ""


@dataclass(frozen=True, slots=True)
class SavedState:
    """How far a run is.

    Attributes:
        pipeline: Its name.
        shards: The shards of ``--shard``.
        known: With ``--continuous``: the differences that are known, of earlier rounds too.
    """

    pipeline: str
    shards: tuple[str, ...]
    targets: tuple[SavedTarget, ...]
    known: tuple[KnownDifference, ...] = ()


class StateFile:
    """The file of ``--resume``, or none.

    Args:
        path: Of the file; None to keep nothing.
        pipeline: Name of the pipeline.
        shards: The shards that are compared; empty for all.

    Attributes:
        known: See ``SavedState``.

    Raises:
        ConfigError: The file is of another comparison, or cannot be read.
    """

    def __init__(self, path: Path | None, pipeline: str, shards: tuple[str, ...]) -> None:
        self._path = path
        self._pipeline, self._shards = pipeline, shards
        self._targets: dict[str, SavedTarget] = {}
        self.known: tuple[KnownDifference, ...] = ()
        if path is None or not path.exists():
            return
        try:
            found = load(SavedState, path.read_bytes())
        except ContractError as error:
            raise ConfigError(f"{path}: {error.message}", code="SM-5601") from error
        if (found.pipeline, found.shards) != (pipeline, shards):
            raise ConfigError(
                f"{path} has the state of another comparison: {found.pipeline}"
                f" ({', '.join(found.shards) or 'all shards'})",
                hint="name another file, or remove it to begin anew",
                code="SM-5601",
            )
        self._targets = {saved.target: saved for saved in found.targets}
        self.known = found.known

    def restore(self, validation: TableValidation) -> bool:
        """Go on with a saved comparison. Returns whether it is done already."""
        saved = self._targets.get(str(validation.table.target))
        table = validation.table
        if saved is None or (saved.key, saved.compared) != (table.key, digest_of(table)):
            return False
        validation.after = saved.after or None
        validation.scanned = saved.scanned
        validation.ranges, validation.rows = saved.ranges, saved.rows
        validation.doubts = {key: Doubt(key) for key in saved.doubts}
        validation.differences = list(saved.differences)
        validation.unsettled = list(saved.unsettled)
        return saved.done

    def save(self, validation: TableValidation, *, done: bool = False) -> None:
        """Keep how far a comparison is, if it is between two ranges."""
        if self._path is None or not validation.is_between_ranges:
            return
        table = validation.table
        self._targets[str(table.target)] = SavedTarget(
            str(table.target),
            table.key,
            validation.after or (),
            validation.scanned,
            done,
            validation.ranges,
            validation.rows,
            tuple(sorted(validation.doubts)),
            tuple(validation.differences),
            tuple(validation.unsettled),
            digest_of(table),
        )
        self._write(self._path)

    def keep_known(self, known: tuple[KnownDifference, ...]) -> None:
        """Keep since when differences are known."""
        self.known = known
        if self._path is not None:
            self._write(self._path)

    def end_run(self) -> None:
        """Forget a run that is complete; without known differences the file is removed."""
        self._targets = {}
        if self._path is None:
            return
        if self.known:
            self._write(self._path)
        else:
            self._path.unlink(missing_ok=True)

    def _write(self, path: Path) -> None:
        targets = tuple(self._targets.values())
        state = SavedState(self._pipeline, self._shards, targets, self.known)
        beside = path.with_name(path.name + ".new")
        beside.write_bytes(dump(state))
        os.replace(beside, path)
