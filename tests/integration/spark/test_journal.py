"""The DDL journal against a real target: nothing runs twice, whatever crashes when."""

from __future__ import annotations

import threading
import time

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.targets.interface import JournalEntry
from shardmerge.spark_sink.targets.mysql.ddl.journal import Journal
from shardmerge.spark_sink.targets.mysql.session import MySqlSession

from .rig import Rig, statement

DONE = JournalEntry("done")


class Crash(BaseException):
    """The process ends here."""


def create(rig: Rig, columns: str = "id INT NOT NULL PRIMARY KEY, v VARCHAR(20)") -> str:
    return f"CREATE TABLE {rig.target.sql} ({columns})"


def alter(rig: Rig, action: str) -> str:
    return f"ALTER TABLE {rig.target.sql} {action}"


def crash(patch: pytest.MonkeyPatch, when: str, *, after: bool) -> None:
    """End the process just before, or just after, the statement that begins with ``when``."""
    real = MySqlSession.execute

    def execute(self: MySqlSession, text: str, arguments: object = ()) -> int:
        if not text.startswith(when):
            return real(self, text, arguments)  # type: ignore[arg-type]
        if after:
            real(self, text, arguments)  # type: ignore[arg-type]
        raise Crash

    patch.setattr(MySqlSession, "execute", execute)


def test_a_statement_is_executed_once(rig: Rig) -> None:
    journal = rig.journal()

    assert journal.execute(rig.target, 1, 0, statement(create(rig))) == DONE
    assert journal.execute(rig.target, 1, 0, statement(create(rig))) == DONE
    assert journal.execute(rig.target, 2, 0, statement(alter(rig, "ADD COLUMN w INT"))) == DONE
    assert journal.execute(rig.target, 2, 0, statement(alter(rig, "ADD COLUMN w INT"))) == DONE
    assert [c.name for c in rig.schema().columns] == ["id", "v", "w"]
    assert journal.load() == {(rig.target, 1, 0): DONE, (rig.target, 2, 0): DONE}


def test_the_targets_database_is_made_when_it_is_missing(rig: Rig) -> None:
    rig.session.execute(f"DROP DATABASE `{rig.target.database}`")

    assert rig.journal().execute(rig.target, 1, 0, statement(create(rig))) == DONE


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    "action",
    [
        "ADD COLUMN w INT NOT NULL DEFAULT 0",
        "DROP COLUMN v",
        "RENAME COLUMN v TO w",
        "ALTER COLUMN v SET DEFAULT 'x'",
        "MODIFY v VARCHAR(40) NOT NULL",
        "ADD UNIQUE KEY u (v)",
    ],
)
def test_a_crash_around_the_statement_runs_it_exactly_once(
    rig: Rig, action: str, *, after: bool
) -> None:
    rig.journal().execute(rig.target, 1, 0, statement(create(rig)))
    text = alter(rig, action)
    with pytest.MonkeyPatch.context() as patch:
        crash(patch, "ALTER", after=after)
        with pytest.raises(Crash):
            rig.journal().execute(rig.target, 2, 0, statement(text))
    assert rig.journal().load()[rig.target, 2, 0] == JournalEntry("intent")

    assert rig.journal().execute(rig.target, 2, 0, statement(text)) == DONE
    assert rig.journal().load()[rig.target, 2, 0] == DONE


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_around_create_table_runs_it_exactly_once(rig: Rig, *, after: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        crash(patch, "CREATE TABLE", after=after)
        with pytest.raises(Crash):
            rig.journal().execute(rig.target, 1, 0, statement(create(rig)))

    assert rig.journal().execute(rig.target, 1, 0, statement(create(rig))) == DONE


def test_a_target_that_somebody_changed_meanwhile_is_left_alone_until_mended(rig: Rig) -> None:
    rig.journal().execute(rig.target, 1, 0, statement(create(rig)))
    text = statement(alter(rig, "ADD COLUMN w INT"))
    with pytest.MonkeyPatch.context() as patch:
        crash(patch, "ALTER", after=False)
        with pytest.raises(Crash):
            rig.journal().execute(rig.target, 2, 0, text)
    rig.session.execute(alter(rig, "ADD COLUMN mine INT"))

    for _ in range(2):
        entry = rig.journal().execute(rig.target, 2, 0, text)
        assert entry.state == "refused"
        assert "somebody changed the target" in entry.error
        assert "mine" in entry.error
    rig.session.execute(alter(rig, "DROP COLUMN mine"))
    assert rig.journal().execute(rig.target, 2, 0, text) == DONE
    assert [c.name for c in rig.schema().columns] == ["id", "v", "w"]


@pytest.mark.parametrize("after", [False, True])
def test_a_statement_that_was_begun_is_settled_before_another_changes_the_table(
    rig: Rig, *, after: bool
) -> None:
    rig.journal().execute(rig.target, 1, 0, statement(create(rig)))
    dropped = statement(alter(rig, "DROP COLUMN v"))
    with pytest.MonkeyPatch.context() as patch:
        crash(patch, "ALTER", after=after)
        with pytest.raises(Crash):
            rig.journal().execute(rig.target, 2, 0, dropped)

    added = statement(alter(rig, "ADD COLUMN w INT"))
    assert rig.journal().execute(rig.target, 3, 0, added) == DONE
    state = rig.journal().load()[rig.target, 2, 0].state
    assert state == ("done" if after else "intent")
    assert rig.journal().execute(rig.target, 2, 0, dropped) == DONE
    assert [c.name for c in rig.schema().columns] == ["id", "w"]


@pytest.mark.parametrize("after", [False, True])
def test_a_statement_that_an_earlier_version_began_is_settled_by_its_text(
    rig: Rig, *, after: bool
) -> None:
    rig.journal().execute(rig.target, 1, 0, statement(create(rig)))
    dropped = statement(alter(rig, "DROP COLUMN v"))
    with pytest.MonkeyPatch.context() as patch:
        crash(patch, "ALTER", after=after)
        with pytest.raises(Crash):
            rig.journal().execute(rig.target, 2, 0, dropped)
    journal = rig.control.table("ddl_journal")
    rig.session.execute(f"ALTER TABLE {journal} DROP COLUMN actions")

    for _ in range(2):
        rig.control.prepare()
    assert rig.session.query(f"SELECT DISTINCT actions FROM {journal}") == [(None,)]
    added = statement(alter(rig, "ADD COLUMN w INT"))
    assert rig.journal().execute(rig.target, 3, 0, added) == DONE
    assert rig.journal().load()[rig.target, 2, 0].state == ("done" if after else "intent")
    assert rig.journal().execute(rig.target, 2, 0, dropped) == DONE
    assert [c.name for c in rig.schema().columns] == ["id", "w"]


def test_what_the_target_refuses_is_journalled_and_may_be_tried_again(rig: Rig) -> None:
    journal = rig.journal()
    journal.execute(rig.target, 1, 0, statement(create(rig)))
    rig.session.execute(f"INSERT INTO {rig.target.sql} VALUES (1, 'x'), (2, 'x')")
    text = statement(alter(rig, "ADD UNIQUE KEY u (v)"))

    entry = journal.execute(rig.target, 2, 0, text)
    assert entry.state == "refused"
    assert "Duplicate entry" in entry.error
    assert "rows alike in (v): 'x' in (id=1) and (id=2); change these rows" in entry.error
    assert journal.load()[rig.target, 2, 0] == entry
    rig.session.execute(f"DELETE FROM {rig.target.sql} WHERE id = 2")
    assert journal.execute(rig.target, 2, 0, text) == DONE


def test_the_rows_for_which_a_statement_is_refused_are_named_with_their_shards(rig: Rig) -> None:
    journal = rig.journal(shard_columns={"_shard", "other"})
    columns = "id INT NOT NULL PRIMARY KEY, `a%` VARCHAR(20), b VARCHAR(20), _shard VARCHAR(20)"
    journal.execute(rig.target, 1, 0, statement(create(rig, columns)))
    rig.session.execute(
        f"INSERT INTO {rig.target.sql} VALUES (1, NULL, 'xy', 's1'), (2, NULL, 'xz', 's2')"
    )

    entry = journal.execute(rig.target, 2, 0, statement(alter(rig, "MODIFY `a%` INT NOT NULL")))
    assert "rows with NULL in a%: (id=1, _shard='s1') and (id=2, _shard='s2'); " in entry.error
    rig.session.execute(f"UPDATE {rig.target.sql} SET `a%` = '%s'")
    index = "ADD UNIQUE KEY u (b(1), `a%`)"
    entry = journal.execute(rig.target, 3, 0, statement(alter(rig, index)))
    assert "rows alike in (b, a%): 'x', '%s' in (id=1, _shard='s1') and (id=2," in entry.error
    wide = alter(rig, "MODIFY b VARCHAR(1)")
    assert "change these rows" not in journal.execute(rig.target, 4, 0, statement(wide)).error


def test_a_table_that_is_there_is_taken_when_it_accepts_the_rows(rig: Rig) -> None:
    rig.create("id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(30), more INT NULL")
    wanted = create(rig, "id INT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL")

    assert rig.journal().execute(rig.target, 1, 0, statement(wanted)) == DONE


@pytest.mark.parametrize(
    ("there", "word"),
    [
        ("id INT NOT NULL PRIMARY KEY", "v"),
        ("id INT NOT NULL PRIMARY KEY, v VARCHAR(5)", "v"),
        ("id INT NOT NULL PRIMARY KEY, v VARCHAR(20), more INT NOT NULL", "more"),
        ("id INT NOT NULL PRIMARY KEY, v VARCHAR(20), UNIQUE (v)", "v"),
        ("id INT NOT NULL, v VARCHAR(20) PRIMARY KEY", "primary key"),
        ("id INT NOT NULL PRIMARY KEY, v INT", "v"),
    ],
)
def test_a_table_that_is_there_and_does_not_fit_is_refused(rig: Rig, there: str, word: str) -> None:
    rig.create(there)

    entry = rig.journal().execute(rig.target, 1, 0, statement(create(rig)))
    assert entry.state == "refused"
    assert "does not fit" in entry.error
    assert word in entry.error
    rig.session.execute(f"DROP TABLE {rig.target.sql}")
    assert rig.journal().execute(rig.target, 1, 0, statement(create(rig))) == DONE


def test_a_column_that_is_there_is_taken_when_it_accepts_the_rows(rig: Rig) -> None:
    journal = rig.journal()
    columns = "id INT NOT NULL PRIMARY KEY, w VARCHAR(40), x INT NOT NULL, k CHAR(3), UNIQUE (k)"
    rig.session.execute(f"{create(rig, columns)} DEFAULT CHARSET utf8mb4")
    assert journal.execute(rig.target, 1, 0, statement(alter(rig, "ADD COLUMN w CHAR(3)"))) == DONE
    assert journal.execute(rig.target, 2, 0, statement(alter(rig, "DROP COLUMN gone"))) == DONE
    entry = journal.execute(rig.target, 3, 0, statement(alter(rig, "ADD COLUMN x INT")))
    assert entry.state == "refused"
    assert "column x is there already and does not fit" in entry.error
    rig.session.execute(alter(rig, "MODIFY x BIGINT NULL"))
    assert journal.execute(rig.target, 3, 0, statement(alter(rig, "ADD COLUMN x INT"))) == DONE
    # Text of any charset can be had in utf8mb4; but another collation may call two keys the same.
    latin = "CHAR(3) CHARACTER SET latin1"
    same = statement(alter(rig, f"ADD COLUMN w {latin}"))
    assert journal.execute(rig.target, 4, 0, same) == DONE
    key = journal.execute(rig.target, 5, 0, statement(alter(rig, f"ADD COLUMN k {latin}")))
    assert "expected `k` char(3) CHARACTER SET latin1, found" in key.error
    assert [c.name for c in rig.schema().columns] == ["id", "w", "x", "k"]


def test_what_is_gone_already_need_not_be_dropped(rig: Rig) -> None:
    journal = rig.journal()
    journal.execute(rig.target, 1, 0, statement(create(rig)))

    for version, action in enumerate(("INDEX gone", "CHECK gone", "COLUMN gone"), 2):
        text = alter(rig, f"DROP {action}")
        assert journal.execute(rig.target, version, 0, statement(text)) == DONE


def test_a_statement_that_cannot_be_verified_is_not_executed(rig: Rig) -> None:
    rig.journal().execute(rig.target, 1, 0, statement(create(rig)))

    for text in (alter(rig, "DANCE"), f"UPDATE {rig.target.sql} SET v = 1"):
        entry = rig.journal().execute(rig.target, 2, 0, statement(text))
        assert entry.state == "refused"
        assert "not executed" in entry.error


def test_a_writer_of_an_older_epoch_executes_nothing(rig: Rig) -> None:
    older: Journal = rig.journal()
    rig.control.take_epoch()

    with pytest.raises(TargetError, match="another writer"):
        older.execute(rig.target, 1, 0, statement(create(rig)))
    assert rig.session.query(f"SHOW TABLES FROM `{rig.target.database}`") == []


def test_a_transaction_that_holds_the_table_delays_the_statement(rig: Rig) -> None:
    rig.journal().execute(rig.target, 1, 0, statement(create(rig)))
    text = statement(alter(rig, "ADD COLUMN w INT"))
    reader = rig.new_session()
    with reader.transaction():
        reader.query(f"SELECT * FROM {rig.target.sql}")
        with pytest.raises(TargetError) as error:
            rig.journal().execute(rig.target, 2, 0, text)
        assert error.value.retryable
        assert "SHOW PROCESSLIST" in error.value.hint
    reader.close()

    assert rig.journal().execute(rig.target, 2, 0, text) == DONE


def test_the_server_is_asked_what_a_running_statement_does(rig: Rig) -> None:
    rig.journal().execute(rig.target, 1, 0, statement(create(rig)))
    text = statement(alter(rig, "ADD COLUMN w INT"))
    reader, watching, other = rig.new_session(), rig.journal(), rig.journal(lock_wait_s=60)
    assert watching.stage(rig.target) == ""
    with reader.transaction():
        reader.query(f"SELECT * FROM {rig.target.sql}")
        thread = threading.Thread(target=other.execute, args=(rig.target, 2, 0, text))
        thread.start()
        # It passes through other stages first ("Opening tables").
        stages = {""}
        deadline = time.monotonic() + 50
        while not any("metadata lock, for " in stage for stage in stages):
            assert time.monotonic() < deadline, stages
            stages.add(watching.stage(rig.target))
            time.sleep(0.02)
    thread.join()
    reader.close()
    assert watching.stage(rig.target) == ""


def test_a_statement_that_would_lock_others_out_is_refused_when_it_must_not(rig: Rig) -> None:
    journal = rig.journal(online=True)
    journal.execute(rig.target, 1, 0, statement(create(rig)))
    for version, action in enumerate(("ADD COLUMN w INT", "ADD UNIQUE KEY u (w)", "DROP COLUMN w")):
        assert journal.execute(rig.target, 2 + version, 0, statement(alter(rig, action))) == DONE

    entry = journal.execute(rig.target, 5, 0, statement(alter(rig, "MODIFY v INT")))
    assert entry.state == "refused"
    assert "LOCK=NONE is not supported" in entry.error
    assert "online_ddl = false" in entry.error
    assert rig.journal().execute(rig.target, 5, 0, statement(alter(rig, "MODIFY v INT"))) == DONE


def test_a_second_driver_waits_for_the_statement_of_the_first(rig: Rig) -> None:
    rig.journal().execute(rig.target, 1, 0, statement(create(rig)))
    text = statement(alter(rig, "ADD COLUMN w INT"))
    reader = rig.new_session()
    reader.execute("START TRANSACTION")
    reader.query(f"SELECT * FROM {rig.target.sql}")
    entries: list[JournalEntry] = []
    threads = [
        threading.Thread(
            target=lambda: entries.append(
                rig.journal(lock_wait_s=60).execute(rig.target, 2, 0, text)
            )
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    threads[0].join(0.5)
    reader.execute("COMMIT")
    for thread in threads:
        thread.join(30)
    reader.close()

    assert entries == [DONE, DONE]
    assert [c.name for c in rig.schema().columns] == ["id", "v", "w"]


def test_characters_that_the_target_cannot_show_do_not_count_as_a_difference(rig: Rig) -> None:
    journal = rig.journal()
    journal.execute(rig.target, 1, 0, statement(create(rig)))

    for number, action in enumerate(
        [
            "ADD COLUMN d VARCHAR(9) NOT NULL DEFAULT 'ñ''😀'",
            "ADD COLUMN e ENUM('a','😀') DEFAULT '😀'",
            "ADD COLUMN g VARCHAR(30) AS (CONCAT(v, '😀')) VIRTUAL",
        ]
    ):
        entry = journal.execute(rig.target, 2, number, statement(alter(rig, action)))
        assert entry == DONE
