from __future__ import annotations

from shardmerge.agents.status.column_history import MAX_EVENTS
from tests.example_pages import ORDERS, ExampleLine, orders, pipeline

TABLE = "id INT PRIMARY KEY, a INT"


def line(shards: int = 3) -> ExampleLine:
    found = ExampleLine(pipeline())
    for number in range(shards):
        found.table(orders(number), TABLE)
    return found


def told(found: ExampleLine, name: str) -> list[tuple[str, str, int]]:
    """Kind, detail and count of what happened to a column, statements of the target aside."""
    target = found.view.target(str(ORDERS))
    assert target is not None
    (column,) = [c for c in target.columns if c.name == name]
    return [(e.kind, e.detail, e.count) for e in column.history if e.kind != "target"]


def test_shards_that_come_with_a_column_are_one_event():
    assert told(line(), "a") == [("first", "int", 3)]


def test_an_added_dropped_and_changed_column_tells_each():
    found = line()
    for number in range(2):
        found.run(orders(number), f"ALTER TABLE orders_{number} ADD COLUMN b INT")
    found.run(orders(0), "ALTER TABLE orders_0 MODIFY b BIGINT")
    found.run(orders(1), "ALTER TABLE orders_1 DROP COLUMN b")
    assert told(found, "b") == [("added", "int", 2), ("changed", "bigint", 1), ("dropped", "b", 1)]


def test_a_renamed_column_keeps_its_history():
    found = line()
    found.run(orders(0), "ALTER TABLE orders_0 RENAME COLUMN a TO z")
    assert told(found, "z") == [("first", "int", 3), ("renamed", "z", 1)]


def test_a_statement_of_the_target_stands_behind_the_change_that_asked_for_it():
    found = line()
    found.run(orders(0), "ALTER TABLE orders_0 ADD COLUMN b INT")
    target = found.view.target(str(ORDERS))
    assert target is not None
    (column,) = [c for c in target.columns if c.name == "b"]
    added, statement = column.history
    assert (added.kind, added.shard, added.version) == ("added", orders(0), 4)
    assert (statement.kind, statement.shard, statement.version) == ("target", None, 4)
    assert statement.detail == "ALTER TABLE `merged`.`orders` ADD COLUMN `b` int"


def test_an_event_tells_the_first_shard_and_the_last_version():
    found = line()
    for number in range(3):
        found.run(orders(number), f"ALTER TABLE orders_{number} ADD COLUMN b INT")
    target = found.view.target(str(ORDERS))
    assert target is not None
    event = target.columns[-1].history[0]
    assert (event.version, event.last_version, event.shard) == (4, 6, orders(0))


def test_only_so_many_different_events_are_kept():
    found = line(1)
    for size in range(1, MAX_EVENTS + 10):
        found.run(orders(0), f"ALTER TABLE orders_0 MODIFY a VARCHAR({size})")
    kept = told(found, "a")
    assert len(kept) == MAX_EVENTS
    assert kept[-1][1].startswith(f"varchar({MAX_EVENTS + 9})")
