"""What the pipeline file's values say by themselves."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.settings import Source


@pytest.mark.parametrize(
    ("databases", "tables", "table", "read"),
    [
        (".*", "", "App.Orders", True),
        ("app", "", "App.Orders", True),
        ("app", "", "apps.orders", False),
        ("app", r"app\.orders_\d", "APP.Orders_1", True),
        ("app", r"app\.orders_\d", "app.orders", False),
        ("app", r"shop\.orders", "shop.orders", False),
    ],
)
def test_a_source_reads_tables_whatever_the_case_of_their_names(
    databases: str, tables: str, table: str, read: bool
) -> None:
    """As Debezium's ``database.include.list`` and ``table.include.list`` do."""
    source = Source("s1", "h", 3306, "u", "p", 54101, databases=databases, tables=tables)
    database, _, name = table.partition(".")
    assert source.reads_table(database, name) is read


def test_a_snapshot_mode_that_debezium_does_not_know_is_refused() -> None:
    with pytest.raises(ConfigError, match="snapshot_mode 'sometimes' is not known") as refused:
        Source("s1", "h", 3306, "u", "p", 54101, snapshot_mode="sometimes")
    assert "initial_only" in refused.value.hint
