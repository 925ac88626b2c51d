"""A connector that could not go on, or would lose rows, is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.connectors.debezium.unread_types import (
    Unread,
    refuse_compressed_binlog,
    refuse_unread,
)
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Source

SOURCE = Source("s1", "h", 3306, "u", "p", 1, flavour="mariadb")
COLUMNS = Unread(("app.t.ip (INET6)",))


def test_a_source_with_such_tables_is_refused_by_name() -> None:
    refuse_unread(SOURCE, Unread())
    with pytest.raises(StackError, match=r"source s1: app\.t\.ip \(INET6\)") as refused:
        refuse_unread(SOURCE, COLUMNS)
    assert (refused.value.code, "VARCHAR(39)" in refused.value.hint) == ("SM-4407", True)


def test_a_source_that_takes_no_snapshot_may_have_such_columns_but_no_versioned_table() -> None:
    never = replace(SOURCE, snapshot_mode="never")
    refuse_unread(never, COLUMNS)
    with pytest.raises(StackError, match=r"source s1: app\.v is system-versioned"):
        refuse_unread(never, Unread(versioned=("app.v",)))


def test_a_compressed_column_is_refused_whatever_the_snapshot() -> None:
    for source in (SOURCE, replace(SOURCE, snapshot_mode="never")):
        with pytest.raises(
            StackError, match=r"source s1: app\.t\.text ends .* COMPRESSED"
        ) as refused:
            refuse_unread(source, Unread(compressed=("app.t.text",)))
        assert refused.value.code == "SM-4407"
        assert "MODIFY" in refused.value.hint


def test_a_compressed_binlog_is_refused() -> None:
    refuse_compressed_binlog(SOURCE, is_compressed=False)
    with pytest.raises(StackError, match="source s1: log_bin_compress is ON") as refused:
        refuse_compressed_binlog(SOURCE, is_compressed=True)
    assert refused.value.code == "SM-6114"
    assert "SET GLOBAL log_bin_compress = OFF" in refused.value.hint
