"""A first snapshot that could not end is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.connectors.debezium.unread_types import refuse_unread
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Source

SOURCE = Source("s1", "h", 3306, "u", "p", 1, flavour="mariadb")


def test_a_source_with_such_columns_is_refused_by_name() -> None:
    refuse_unread(SOURCE, ())
    with pytest.raises(StackError, match=r"source s1: app\.t\.ip \(INET6\)") as refused:
        refuse_unread(SOURCE, ("app.t.ip (INET6)",))
    assert (refused.value.code, "VARCHAR(39)" in refused.value.hint) == ("SM-4407", True)


def test_a_source_that_takes_no_snapshot_may_have_them() -> None:
    refuse_unread(replace(SOURCE, snapshot_mode="never"), ("app.t.ip (INET6)",))
