"""The target's side of a cut-over on a TiDB."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shardmerge.cli.cutover.tidying import (
    DEFAULTS,
    ORIGIN,
    counted_column,
    sequence_statements,
    tidying,
)
from shardmerge.schemas.pipeline.settings import Pipeline
from tests.integration.mysql.compared_line import TARGET
from tests.integration.mysql.test_cutover import (
    MERGED,
    Target,
    test_a_record_is_kept_and_forgotten,
    test_closing_waits_for_the_sink_and_lets_none_of_its_transactions_begin,
    test_the_sink_executes_no_statement_on_a_closed_target,
    test_two_calls_for_one_target_exclude_each_other,
)

__all__ = [
    "test_a_record_is_kept_and_forgotten",
    "test_closing_waits_for_the_sink_and_lets_none_of_its_transactions_begin",
    "test_the_sink_executes_no_statement_on_a_closed_target",
    "test_two_calls_for_one_target_exclude_each_other",
]


@pytest.fixture
def merged(tidb_pipeline: Pipeline) -> Iterator[Target]:
    found = Target(tidb_pipeline)
    yield found
    found.close()


def test_what_is_tidied_leaves_a_table_that_counts_by_a_sequence(merged: Target) -> None:
    merged.run(MERGED, "INSERT INTO merged.t VALUES (7, 1, 1, 's1'), (41, 1, 1, 's1')")
    table = merged.table()
    ids = counted_column(table)
    assert ids is not None
    found = tidying(table, [DEFAULTS, ORIGIN], merged.server.largest(ids))
    for statement in found.statements:
        merged.server.execute(statement.sql)
    sequence = sequence_statements(TARGET, ids, 41)
    [note] = found.notes
    assert "; ".join(sequence) in note
    merged.run(*sequence, "INSERT INTO merged.t (a) VALUES (5)")
    with merged.session.transaction():
        assert merged.session.query("SELECT * FROM merged.t WHERE a = 5") == [(42, 5, None)]
