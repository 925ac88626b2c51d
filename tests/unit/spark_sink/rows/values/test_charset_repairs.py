"""Text that Debezium reads by another charset than the column's."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.values.charset_repairs import MISREAD
from shardmerge.spark_sink.rows.values.column_values import UnfitValue
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.rows.values.readers import reader


def text(charset: str) -> ColumnType:
    return ColumnType("varchar", 20, charset=charset)


def test_each_misread_character_stands_for_one() -> None:
    for charset, (wrong, right) in MISREAD.items():
        assert len(wrong) == len(right) == len(set(wrong)), charset
        assert not set(wrong) & set(right), charset


def test_a_backslash_in_sjis_is_one() -> None:
    assert reader(text("sjis")).read(["C:\uff3cx", None, "plain"]) == ["C:\\x", None, "plain"]


@pytest.mark.parametrize("charset", ["latin1", "sjis", "cp1250"])
def test_a_character_that_could_not_be_read_is_refused(charset: str) -> None:
    with pytest.raises(UnfitValue, match="found no character") as caught:
        reader(text(charset)).read(["ok", "a\ufffd"])
    assert "utf8mb4" in caught.value.hint


@pytest.mark.parametrize("charset", ["utf8mb4", "utf8mb3", "utf16", ""])
def test_unicode_has_that_character_itself(charset: str) -> None:
    assert reader(text(charset)).read(["a\ufffd"]) == ["a\ufffd"]


def test_a_charset_that_is_read_as_another_is_refused() -> None:
    with pytest.raises(UnfitValue, match="character set hp8"):
        reader(text("hp8"))


ELEMENTS = ("a", "f,g", "h\\i", 'j"k', "line\nbreak")


@pytest.mark.parametrize(
    ("spelled", "element"),
    [
        ("a", "a"),
        ("f\\,g", "f,g"),
        ("h\\\\i", "h\\i"),
        ("h\\i", "h\\i"),
        ('j\\"k', 'j"k'),
        ("line\\nbreak", "line\nbreak"),
    ],
)
def test_an_element_is_found_however_it_is_spelled(spelled: str, element: str) -> None:
    enum = reader(ColumnType("enum", elements=ELEMENTS, charset="utf8mb4"))
    assert enum.read([spelled, None]) == [element, None]


QUOTED = ('a"b', "c''d", 'e""f', "it's", "'", '"', ",''", 'g\\"h')


@pytest.mark.parametrize(
    ("spelled", "element"),
    [
        ('a""b', 'a"b'),
        ('a\\"b', 'a"b'),
        ('a"b', 'a"b'),
        ("c'd", "c''d"),
        ("c''d", "c''d"),
        ('e""f', 'e""f'),
        ('e""""f', 'e""f'),
        ('e\\"""f', 'e""f'),
        ("it's", "it's"),
        ('""', '"'),
        ("\\,'", ",''"),
        ('g\\\\""h', 'g\\"h'),
    ],
)
def test_an_element_with_quotes_is_found_in_either_quotes(spelled: str, element: str) -> None:
    enum = reader(ColumnType("enum", elements=QUOTED, charset="utf8mb4"))
    assert enum.read([spelled, None]) == [element, None]


def test_members_of_a_set_are_found_however_they_are_spelled() -> None:
    members = reader(ColumnType("set", elements=("x", "q\\r"), charset="utf8mb4"))
    assert members.read(["x,q\\\\r", "", None]) == ["x,q\\r", "", None]


def test_json_has_a_form_of_its_own() -> None:
    assert reader(ColumnType("json")).form is Form.JSON
