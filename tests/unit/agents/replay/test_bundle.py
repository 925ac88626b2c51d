"""Bundles: byte for byte, and what is none is told."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO

import pytest

from shardmerge.agents.replay.bundle import Bundle, write_bundle
from shardmerge.connectors.formats.stored_record import Extent, StoredRecord
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.pipeline import topics
from tests.recorded import Recorded

ODD = [
    StoredRecord("p.ddl", 0, 3, None, None, (), -1, 0),
    StoredRecord("p.ddl", 0, 7, b"", b"", (("a", None), ("a", b""), ("é", b"\xff\x00")), 0, 1),
    StoredRecord("p.ddl", 0, 8, b"\x00\n", b'"\xff', (), 2**41, 2),
]


@pytest.fixture(scope="module")
def made() -> Recorded:
    made = Recorded()
    made.execute("s1", "CREATE TABLE tbl1 (ID INT PRIMARY KEY)", snapshot=True)
    made.execute("s1", "ALTER TABLE tbl1 ADD COLUMN a INT")
    return made


def opened(data: bytes) -> Bundle:
    return Bundle(BytesIO(data), "x.zip")


def rewritten(data: bytes, **entries: bytes | None) -> bytes:
    """The archive with other entries; None leaves one out."""
    file = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            short = name.partition("/")[0].partition(".")[0]
            content = entries.get(short, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return file.getvalue()


def with_manifest(data: bytes, **fields: object) -> bytes:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        plain = json.loads(archive.read("manifest.json"))
    return rewritten(data, manifest=json.dumps({**plain, **fields}).encode())


def test_records_come_back_byte_for_byte(made: Recorded) -> None:
    file = BytesIO()
    extent = Extent("p.ddl", 0, 3, 9, 12)
    write_bundle(
        file,
        "[pipeline]",
        [(extent, ODD)],
        pipeline="p",
        written_by="1",
        exported_at="now",
    )
    valid = opened(made.bundle_bytes())
    data = rewritten(file.getvalue(), pipeline=valid._text("pipeline.toml").encode())
    bundle = opened(data)
    (part,) = bundle.partitions("p.ddl")
    assert list(bundle.records(part)) == ODD
    assert (part.begin, part.end, part.high_watermark, part.records) == (3, 9, 12, 3)


def test_equal_content_is_equal_bytes(made: Recorded) -> None:
    assert made.bundle_bytes() == made.bundle_bytes()


def test_a_bundle_holds_every_topic_and_its_pipeline_without_passwords(made: Recorded) -> None:
    data = made.bundle_bytes()
    bundle = opened(data)
    assert {part.topic for part in bundle.manifest.parts} == {
        spec.name for spec in topics.own_topics(made.pipeline)
    }
    assert bundle.pipeline.routes == made.pipeline.routes
    assert bundle.pipeline.target.password == ""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        texts = [archive.read(name) for name in archive.namelist()]
    assert not any(b"secret" in text for text in texts)


def test_a_bundle_that_was_cut_off_is_refused_wherever_it_ends(made: Recorded) -> None:
    data = made.bundle_bytes()
    for size in range(0, len(data), 97):
        with pytest.raises(ContractError, match=r"x\.zip is not a bundle, or its end"):
            opened(data[:size])


def test_a_bundle_with_a_wrong_byte_is_refused(made: Recorded) -> None:
    data = made.bundle_bytes()
    with zipfile.ZipFile(BytesIO(data)) as archive:
        info = archive.getinfo("records/p.ddl/0.jsonl")
    at = info.header_offset + 30 + len(info.filename) + info.compress_size // 2
    bundle = opened(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
    with pytest.raises(ContractError, match=r"p\.ddl/0\.jsonl"):
        list(bundle.records(*bundle.partitions("p.ddl")))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": 2}, "a bundle of format 2, not 1"),
        ({"format": "1"}, "a bundle of format '1'"),
        ({"kind": "zip"}, "is of kind 'zip'"),
        ({"parts": 1}, "not a Manifest"),
        ({"more": 1}, "has no field 'more'"),
    ],
)
def test_another_manifest_is_refused(made: Recorded, fields: dict[str, object], message: str):
    with pytest.raises(ContractError, match=message):
        opened(with_manifest(made.bundle_bytes(), **fields))


def test_an_archive_that_is_no_bundle_is_refused(made: Recorded) -> None:
    data = made.bundle_bytes()
    with pytest.raises(ContractError, match=r"an archive without manifest\.json"):
        opened(rewritten(data, manifest=None))
    for wrong in (b"", b"[]", b"{"):
        with pytest.raises(ContractError, match=r"manifest\.json"):
            opened(rewritten(data, manifest=wrong))
    with pytest.raises(ContractError, match=r"lacks its entry pipeline\.toml"):
        opened(rewritten(data, pipeline=None))
    with pytest.raises(ContractError, match=r"pipeline\.toml: .*pipeline"):
        opened(rewritten(data, pipeline=b""))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b"", "has 0 records, the manifest says 2"),
        (b"{}\n", "line 1 is not a record: KeyError"),
        (b"hello\n", "line 1 is not a record"),
        (
            b'{"offset":0,"timestamp":0,"timestamp_type":0,"key":"?","headers":[],"value":null}\n',
            "line 1 is not a record",
        ),
        (
            b'{"offset":1,"timestamp":0,"timestamp_type":0,"key":null,"headers":[],"value":null}\n'
            * 2,
            "line 2: offset 1 comes after 1",
        ),
    ],
)
def test_damaged_records_are_told_with_their_line(
    made: Recorded, lines: bytes, message: str
) -> None:
    bundle = opened(rewritten(made.bundle_bytes(), records=lines))
    with pytest.raises(ContractError, match=message):
        list(bundle.records(*bundle.partitions("p.ddl")))


def test_a_topic_that_is_not_there_is_told(made: Recorded) -> None:
    bundle = opened(with_manifest(made.bundle_bytes(), missing=["p.gone"]))
    with pytest.raises(ContractError, match="did not exist at the export"):
        bundle.partitions("p.gone")
    with pytest.raises(ContractError, match=r"does not hold topic q \(it holds .*p.ddl"):
        bundle.partitions("q")
