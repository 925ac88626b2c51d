"""What a connector learned wrongly of columns is corrected while it reads its schema history.

Records as Debezium wrote them beside an earlier jar, read by Debezium with our jar beside it. The
whole line: ``test_ddl_grammar.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from .java_mains import JavaMain

INT = {"typeName": "INT", "jdbcType": 4}
TEXT = {"typeName": "VARCHAR", "jdbcType": 12, "length": 9, "charsetName": "latin1"}
WRONG_ENUM = {"typeName": "ENUM BINARY", "jdbcType": 1, "length": 1, "enumValues": []}
ID = ("id", INT, False)
CHECKED = "n INT CHECK (n IS NOT NULL OR id > 5)"
CREATE = f"CREATE TABLE t (id INT NOT NULL, {CHECKED})"
NULLABLE = "t n NULL INT [] null"
NOT_NULL = "t n NOT NULL INT [] null"

Column = tuple[str, Mapping[str, Any], bool]


def change(
    kind: str, columns: Sequence[Column] = (), table: str = "t", before: str = ""
) -> dict[str, Any]:
    """A description of a table; each column has a name, a type, and whether it is nullable."""
    described = [
        {"name": name, "position": number, "optional": nullable, "autoIncremented": False,
         "generated": False, "hasDefaultValue": nullable, **kind_of}
        for number, (name, kind_of, nullable) in enumerate(columns, 1)
    ]  # fmt: skip
    told: dict[str, Any] = {"type": kind, "id": f'"d"."{table}"'}
    if kind != "DROP":
        told["table"] = {"defaultCharsetName": "utf8mb4", "primaryKeyColumnNames": []}
        told["table"]["columns"] = described
    return {**told, "previousId": f'"d"."{before}"'} if before else told


def record(text: str, *changes: Mapping[str, Any], pos: int = 4, **more: object) -> str:
    position = {"file": "b.000001" if pos == 4 else "b.000009", "pos": pos, **more}
    return json.dumps(
        {"source": {"server": "s1"}, "position": position, "databaseName": "d", "ddl": text,
         "tableChanges": changes}
    )  # fmt: skip


CREATED = record(CREATE, change("CREATE", (ID, ("n", INT, False))))
ADDED = (
    CREATED,
    record(
        "ALTER TABLE t ADD v VARCHAR(9) CHARACTER SET latin1",
        change("ALTER", (ID, ("n", INT, False), ("v", TEXT, True))),
    ),
)
RENAMED = (
    *ADDED,
    record(
        "RENAME TABLE t TO u",
        change("ALTER", (ID, ("n", INT, False), ("v", TEXT, True)), "u", before="t"),
    ),
)
MADE_NOT_NULL = (
    CREATED,
    record("ALTER TABLE t MODIFY n INT NOT NULL", change("ALTER", (ID, ("n", INT, False)))),
)
DROPPED = (CREATED, record("DROP TABLE t", change("DROP")))
UNSIGNED = {**INT, "typeName": "INT UNSIGNED"}

HISTORIES: dict[str, tuple[Sequence[str], list[str]]] = {
    "a condition made a column NOT NULL": ((CREATED,), [NULLABLE]),
    "a condition made a column nullable": (
        (
            record(
                "CREATE TABLE t (id INT NOT NULL, n INT NOT NULL CHECK (id IS NULL))",
                change("CREATE", (ID, ("n", INT, True))),
            ),
        ),
        [NOT_NULL],
    ),
    "a later description repeats it": (ADDED, [NULLABLE, "t v NULL VARCHAR [] latin1"]),
    "its table was renamed": (RENAMED, ["u n NULL INT [] null", "u v NULL VARCHAR [] latin1"]),
    "it was renamed": (
        (
            *RENAMED,
            record(
                "ALTER TABLE u RENAME COLUMN n TO m",
                change("ALTER", (ID, ("m", INT, False), ("v", TEXT, True)), "u"),
            ),
        ),
        ["u m NULL INT [] null", "u v NULL VARCHAR [] latin1"],
    ),
    "a table was made like its table": (
        (CREATED, record("CREATE TABLE u LIKE t", change("CREATE", (ID, ("n", INT, False)), "u"))),
        [NULLABLE, "u n NULL INT [] null"],
    ),
    "a later statement makes it NOT NULL": (MADE_NOT_NULL, [NOT_NULL]),
    "a later statement makes it NOT NULL, and another one follows": (
        (
            *MADE_NOT_NULL,
            record(
                "ALTER TABLE t ADD m INT",
                change("ALTER", (ID, ("n", INT, False), ("m", INT, True))),
            ),
        ),
        ["t m NULL INT [] null", NOT_NULL],
    ),
    "an ENUM with BINARY has no elements": (
        (
            record(
                "CREATE TABLE t (id INT NOT NULL, n ENUM('a','b') BINARY)",
                change("CREATE", (ID, ("n", WRONG_ENUM, True))),
            ),
        ),
        ["t n NULL ENUM ['a', 'b'] utf8mb4"],
    ),
    "a description of ours repeats it": (
        (CREATED, record("", change("CREATE", (ID, ("n", INT, False))), snapshot="shardmerge")),
        [NULLABLE],
    ),
    "a description of ours has another type": (
        (
            CREATED,
            record("", change("CREATE", (ID, ("n", UNSIGNED, False))), snapshot="shardmerge"),
        ),
        ["t n NOT NULL INT UNSIGNED [] null"],
    ),
    "its table was dropped": (DROPPED, []),
    "its table was dropped and made anew": (
        (
            *DROPPED,
            record(
                "CREATE TABLE t (id INT NOT NULL, n INT NOT NULL)",
                change("CREATE", (ID, ("n", INT, False))),
            ),
        ),
        [NOT_NULL],
    ),
    "its statement cannot be read again": (
        (
            record(
                "CREATE TABLE t (id INT NOT NULL, n FROBNICATE CHECK (n IS NOT NULL))",
                change("CREATE", (ID, ("n", INT, False))),
            ),
        ),
        [NOT_NULL],
    ),
    "the history does not have its table from before": (
        (
            record(
                "ALTER TABLE t MODIFY n INT CHECK (n IS NOT NULL)",
                change("ALTER", (ID, ("n", INT, False))),
            ),
        ),
        [NOT_NULL],
    ),
    "the description has other columns than the statement": (
        (record(CREATE, change("CREATE", (ID, ("n", INT, False), ("m", INT, False)))),),
        ["t m NOT NULL INT [] null", NOT_NULL],
    ),
    "the character set was the server's of then": (
        (
            record(
                "CREATE TABLE t (id INT NOT NULL, n VARCHAR(9) CHECK (n IS NOT NULL))",
                change("CREATE", (ID, ("n", TEXT, False))),
            ),
        ),
        ["t n NULL VARCHAR [] latin1"],
    ),
    "a statement comes again from the binlog": (
        (
            CREATED,
            record(
                "ALTER TABLE t MODIFY n INT NOT NULL CHECK (n IS NOT NULL)",
                change("ALTER", (ID, ("n", INT, False))),
                pos=9,
            ),
        ),
        [NULLABLE],
    ),
}
"""Records, and what a connector knows of all columns but ``id`` that has read them."""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    main = JavaMain("HistoryRead", tmp_path_factory.mktemp("history"))
    lines = [line for records, _ in HISTORIES.values() for line in (*records, "")]
    known: list[list[str]] = [[]]
    for line in main.told(lines):
        if line == "known.":
            known.append([])
        elif line.startswith("known ") and " id " not in line:
            known[-1].append(line.removeprefix("known "))
    return dict(zip(HISTORIES, map(sorted, known[:-1]), strict=True))


@pytest.mark.parametrize("name", HISTORIES)
def test_a_column_that_was_learned_wrongly_follows_the_statements(
    known: dict[str, list[str]], name: str
) -> None:
    assert known[name] == HISTORIES[name][1]
