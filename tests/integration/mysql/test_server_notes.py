"""A real server's note about how it executes a statement is no refusal of a row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession


@pytest.fixture
def session(server_port: Callable[[str], int]) -> MySqlSession:
    made = MySqlSession(MySqlAddress("127.0.0.1", server_port("mysql80"), USER, PASSWORD))
    made.execute("DROP DATABASE IF EXISTS notes")
    made.execute("CREATE DATABASE notes")
    made.execute("CREATE TABLE notes.t (a INT, b INT, c VARCHAR(2), PRIMARY KEY (a, b))")
    made.execute("INSERT INTO notes.t VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z')")
    return made


def test_a_delete_beyond_the_range_optimizers_memory_is_executed(session: MySqlSession) -> None:
    session.execute("SET SESSION range_optimizer_max_mem_size = 1")
    wanted = ", ".join(f"({n}, {n})" for n in range(1, 200))
    with session._cursor(f"SELECT * FROM notes.t WHERE (a, b) IN ({wanted})", ()) as cursor:
        assert cursor.warning_count
    assert session.execute_strictly(f"DELETE FROM notes.t WHERE (a, b) IN ({wanted})") == 3
    session.close()


def test_blanks_that_a_text_loses_are_a_refusal_although_they_are_a_note(
    session: MySqlSession,
) -> None:
    with pytest.raises(TargetError, match="1265, Note"):
        session.execute_strictly("INSERT INTO notes.t VALUES (9, 9, 'ab  ')")
    session.close()
