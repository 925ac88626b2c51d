"""Definitions in any spelling in, the one canonical text out."""

from __future__ import annotations

from pathlib import Path

from shardmerge.schemas.model.mysql_text import create_table
from tests.strategies import table

FILE = Path(__file__).parent / "render" / "create_table.sql"
SOURCES = (
    "create table t (id integer auto_increment primary key, `we``ird` bool, n numeric(6,2) "
    "unsigned zerofill default 1.5, f float(7,4), d double default 1e20)",
    "create table t (a varchar(9) default 'it''s \\\\ \\n', b char(3) character set latin1 "
    "collate latin1_bin not null default '', c text default ('x'), d json default (json_array()), "
    "e enum('a','b''c') not null default 'b''c', s set('x','y') default 'x,y')",
    "create table t (b bit(3) default b'101', c binary(3) not null default 'ab', "
    "v varbinary(9) default 0x00ff, w varbinary(9) not null default '', x longblob)",
    "create table t (t timestamp null, u timestamp(3) not null default now(3) on update now(3), "
    "y year default 1999, z time(2) default '5')",
    "create table t (a int, b varchar(99), g int as (a + 1), h int as (a * 2) stored not null, "
    "key (b(9) desc), unique ug (g), key kf ((a + 1)), fulltext key ft (b), "
    "constraint c check (a > 0) not enforced, check (b <> ''))",
    "create table t (p point not null srid 4326, spatial key sp (p)) charset utf8mb3 "
    "collate utf8mb3_bin",
)


def test_the_canonical_text_is_the_reviewed_one(update_golden: bool) -> None:
    found = "".join(f"{create_table(table(sql), '`m`.`t`')};\n" for sql in SOURCES)
    if update_golden:
        FILE.write_text(found, encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == found


def test_the_canonical_text_means_what_was_written() -> None:
    for sql in SOURCES:
        schema = table(sql)
        again = table(create_table(schema, "`t`"))
        assert all(not c.auto_increment for c in again.columns)
        text = create_table(again, "`t`")
        assert text == create_table(schema, "`t`")
