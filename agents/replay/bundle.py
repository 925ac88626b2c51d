"""A bundle: one file with what a pipeline decided and from what, to replay it without Kafka.

A ZIP archive, readable with plain tools:

================================  =================================================================
``manifest.json``                 ``Manifest``: format, pipeline, and per partition its offsets
``pipeline.toml``                 a pipeline file without passwords
``records/<topic>/<n>.jsonl``     partition n, one record a line; keys, values and headers in Base64
================================  =================================================================

Equal content gives equal bytes. The manifest is written last and the archive's directory stands at
its end, so a file that was cut off is no bundle.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from shardmerge.connectors.formats.stored_record import Extent, StoredRecord
from shardmerge.schemas.model.errors import ConfigError, ContractError
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.plain import from_plain, to_plain

KIND = "shardmerge bundle"
FORMAT = 1
"""Version of the layout; a change of it needs a reader of the older ones."""

_MANIFEST, _PIPELINE = "manifest.json", "pipeline.toml"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The entries' time of change: the earliest of the format, so that equal content is equal bytes."""
_EXPORT_AGAIN = "copy the bundle again, or export it again with `shardmerge export`"


@dataclass(frozen=True, slots=True)
class Part:
    """One partition in a bundle.

    Attributes:
        begin, end, high_watermark: See ``Extent``.
        records: Their number; commit markers and compaction make it less than ``end - begin``.
        file: Its entry in the archive.
    """

    topic: str
    partition: int
    begin: int
    end: int
    high_watermark: int
    records: int
    file: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is in a bundle.

    Attributes:
        written_by: Version of shardmerge that wrote it; another one may decide otherwise.
        exported_at: Time of the export, ISO 8601.
        pipeline: Its name.
        missing: Topics that did not exist when the bundle was written.
    """

    kind: str
    format: int
    written_by: str
    exported_at: str
    pipeline: str
    parts: tuple[Part, ...]
    missing: tuple[str, ...] = ()


def write_bundle(
    file: BinaryIO,
    pipeline_text: str,
    partitions: Iterable[tuple[Extent, Iterable[StoredRecord]]],
    *,
    pipeline: str,
    written_by: str,
    exported_at: str,
    missing: tuple[str, ...] = (),
) -> Manifest:
    """Write a bundle; reads one record at a time.

    Args:
        file: Open for writing.
        pipeline_text: A pipeline file without passwords and variables.
        partitions: Each with its records in order of their offsets.
        pipeline: See ``Manifest``, as for what follows.
        written_by: Version of shardmerge.
        exported_at: Time of the export.
        missing: Topics that do not exist.
    """
    parts: list[Part] = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_entry(_PIPELINE), pipeline_text.encode())
        for extent, records in partitions:
            name = f"records/{extent.topic}/{extent.partition}.jsonl"
            count = 0
            with archive.open(_entry(name), "w", force_zip64=True) as lines:
                for record in records:
                    lines.write(_line(record))
                    count += 1
            parts.append(
                Part(
                    extent.topic,
                    extent.partition,
                    extent.begin,
                    extent.end,
                    extent.high_watermark,
                    count,
                    name,
                )
            )
        manifest = Manifest(
            KIND, FORMAT, written_by, exported_at, pipeline, tuple(parts), tuple(missing)
        )
        text = json.dumps(to_plain(manifest), indent=2, sort_keys=True) + "\n"
        archive.writestr(_entry(_MANIFEST), text.encode())
    return manifest


class Bundle:
    """A bundle, open for reading. Records are read when they are asked for.

    Attributes:
        name: How messages call it.
        manifest: What it holds.
        pipeline: Of its pipeline file; passwords are empty.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        """Open it.

        Raises:
            ContractError: Not a bundle, cut off, damaged, or of a newer format.
        """
        self.name = name
        try:
            self._archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise ContractError(
                f"{name} is not a bundle, or its end is missing: {error}",
                hint=_EXPORT_AGAIN,
                code="SM-2302",
            ) from None
        self.manifest = self._read_manifest()
        try:
            self.pipeline: Pipeline = parse_pipeline(self._text(_PIPELINE), {})
        except ConfigError as error:
            raise ContractError(
                f"{name}: {_PIPELINE}: {error.message}", hint=error.hint, code=error.code
            ) from error

    def partitions(self, topic: str) -> tuple[Part, ...]:
        """The partitions of a topic.

        Raises:
            ContractError: The bundle does not hold the topic.
        """
        found = tuple(part for part in self.manifest.parts if part.topic == topic)
        if found:
            return found
        if topic in self.manifest.missing:
            raise ContractError(
                f"{self.name} does not hold topic {topic}: it did not exist at the export",
                hint="replay without what needs it",
                code="SM-2304",
            )
        held = ", ".join(dict.fromkeys(part.topic for part in self.manifest.parts))
        raise ContractError(
            f"{self.name} does not hold topic {topic}",
            hint=f"it holds {held or 'none'}",
            code="SM-2304",
        )

    def records(self, part: Part) -> Iterator[StoredRecord]:
        """The records of a partition, in order of their offsets.

        Raises:
            ContractError: The entry is missing, damaged, or not what the manifest says.
        """
        count, latest = 0, -1
        for number, line in enumerate(self._lines(part.file), 1):
            try:
                record = _record(part, json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise ContractError(
                    f"{self.name}: {part.file}, line {number} is not a record: {error!r}",
                    hint=_EXPORT_AGAIN,
                    code="SM-2302",
                ) from error
            if record.offset <= latest:
                raise ContractError(
                    f"{self.name}: {part.file}, line {number}: offset {record.offset} comes after "
                    f"{latest}",
                    hint=_EXPORT_AGAIN,
                    code="SM-2302",
                )
            count, latest = count + 1, record.offset
            yield record
        if count != part.records:
            raise ContractError(
                f"{self.name}: {part.file} has {count} records, the manifest says {part.records}",
                hint=_EXPORT_AGAIN,
                code="SM-2302",
            )

    def _read_manifest(self) -> Manifest:
        if _MANIFEST not in self._archive.namelist():
            raise ContractError(
                f"{self.name} is not a bundle: it is an archive without {_MANIFEST}",
                hint="`shardmerge export` writes bundles",
                code="SM-2301",
            )
        try:
            plain = json.loads(self._text(_MANIFEST))
        except ValueError as error:
            raise ContractError(
                f"{self.name}: {_MANIFEST}: {error}", hint=_EXPORT_AGAIN, code="SM-2302"
            ) from error
        kind, version = (plain.get("kind"), plain.get("format")) if type(plain) is dict else (0, 0)
        if kind != KIND:
            raise ContractError(
                f"{self.name} is not a bundle: its {_MANIFEST} is of kind {kind!r}",
                hint="`shardmerge export` writes bundles",
                code="SM-2301",
            )
        if version != FORMAT:
            raise ContractError(
                f"{self.name} is a bundle of format {version!r}, not {FORMAT}",
                hint=f"read it with the version that wrote it: {plain.get('written_by')!r}",
                code="SM-2303",
            )
        return from_plain(Manifest, plain)

    def _text(self, entry: str) -> str:
        return b"".join(self._lines(entry)).decode()

    def _lines(self, entry: str) -> Iterator[bytes]:
        try:
            with self._archive.open(entry) as lines:
                yield from lines
        except KeyError:
            raise ContractError(
                f"{self.name} lacks its entry {entry}", hint=_EXPORT_AGAIN, code="SM-2302"
            ) from None
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise ContractError(
                f"{self.name}: {entry} is damaged: {error}", hint=_EXPORT_AGAIN, code="SM-2302"
            ) from error


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _line(record: StoredRecord) -> bytes:
    plain = {
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "timestamp_type": record.timestamp_type,
        "key": _to_text(record.key),
        "headers": [[name, _to_text(value)] for name, value in record.headers],
        "value": _to_text(record.value),
    }
    return json.dumps(plain, separators=(",", ":")).encode() + b"\n"


def _record(part: Part, plain: Any) -> StoredRecord:
    return StoredRecord(
        part.topic,
        part.partition,
        _whole(plain["offset"]),
        _to_bytes(plain["key"]),
        _to_bytes(plain["value"]),
        tuple((str(name), _to_bytes(value)) for name, value in plain["headers"]),
        _whole(plain["timestamp"]),
        _whole(plain["timestamp_type"]),
    )


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _to_text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")


def _to_bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text, validate=True)
