"""Folders of migrations are read in the order in which their tools execute them."""

from __future__ import annotations

import pytest

from shardmerge.cli.planning.inputs.migrations import migrations
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.errors import ConfigError

CONTEXT = ServerContext()
FLYWAY = {
    "V10__ten.sql": "j;",
    "V2__two.sql": "b; b2;",
    "V1_1__one_one.sql": "a;",
    "V2.0.1__patch.sql": "c;",
    "R__views.sql": "r;",
    "U2__undo.sql": "never;",
    "B1__baseline.sql": "never;",
}


def read(files: dict[str, str], after: str = "") -> list[tuple[str, list[str]]]:
    found = migrations(files, CONTEXT, "folder", after)
    return [(each.version, [piece.sql for piece in each.pieces]) for each in found]


def test_flyway_goes_by_version_and_repeatable_ones_come_last() -> None:
    assert read(FLYWAY) == [
        ("1.1", ["a"]), ("2", ["b", "b2"]), ("2.0.1", ["c"]), ("10", ["j"]), ("views", ["r"]),
    ]  # fmt: skip


def test_a_version_of_flyway_ends_at_the_first_two_underscores() -> None:
    files = {"V1__2024__users.sql": "a;", "V2024.1__x.sql": "b;", "afterMigrate__grants.sql": "n;"}
    assert read(files) == [("1", ["a"]), ("2024.1", ["b"])]


def test_flyways_folders_make_one_order() -> None:
    files = {"v2/V3__c.sql": "c;", "v1/V1__a.sql": "a;", "V2__b.sql": "b;", "v1/R__r.sql": "r;"}
    assert read(files) == [("1", ["a"]), ("2", ["b"]), ("3", ["c"]), ("r", ["r"])]


@pytest.mark.parametrize("version", ["2", "V2", "2.0", "02"])
def test_what_is_done_is_left_out(version: str) -> None:
    assert [name for name, _ in read(FLYWAY, version)] == ["2.0.1", "10", "views"]


def test_golang_migrate_goes_up_by_number() -> None:
    files = {
        "10_b.up.sql": "b;", "10_b.down.sql": "never;", "9_a.up.sql": "a;", "9_a.down.sql": "n;",
    }  # fmt: skip
    assert read(files) == [("9", ["a"]), ("10", ["b"])]
    assert read(files, "9") == [("10", ["b"])]


def test_plain_files_go_by_number_or_else_by_name() -> None:
    assert read({"10-b.sql": "b", "9-a.sql": "a"}) == [("9", ["a"]), ("10", ["b"])]
    assert read({"b.sql": "b", "1.sql": "a"}) == [("1.sql", ["a"]), ("b.sql", ["b"])]


def test_the_way_back_of_dbmate_and_goose_is_left_out() -> None:
    dbmate = "-- migrate:up\na;\n-- migrate:down\nnever;\n"
    goose = (
        "-- +goose Up\na;\n-- +goose StatementBegin\nb; c\n-- +goose StatementEnd\nd;\n"
        "-- +goose Down\nnever;\n"
    )
    assert read({"1_x.sql": dbmate}) == [("1", ["a"])]
    [migration] = migrations({"1_x.sql": goose}, CONTEXT, "folder")
    assert [(p.sql, p.line) for p in migration.pieces] == [("a", 2), ("b; c", 4), ("d", 6)]


def test_liquibase_files_go_by_name_and_changeset() -> None:
    files = {
        "2.sql": "--liquibase formatted sql\n--changeset ben:1\nc;\n",
        "1.sql": "-- liquibase formatted sql\n--changeset anna:1\na;\n--changeset anna:2\nb;\n",
    }
    assert read(files) == [("anna:1", ["a"]), ("anna:2", ["b"]), ("ben:1", ["c"])]
    assert read(files, "anna:1") == [("anna:2", ["b"]), ("ben:1", ["c"])]


@pytest.mark.parametrize(
    ("files", "after", "message"),
    [
        ({}, "", "folder has no migration"),
        ({"V1__a.sql": "a", "1_b.up.sql": "b"}, "", "of Flyway and of golang-migrate"),
        ({"V1__a.sql": "a", "x/V1.0__b.sql": "b"}, "", "x/V1.0__b.sql have the same version"),
        ({"V1__a.sql": "a", "V__b.sql": "b"}, "", "of Flyway, but V__b.sql is not one"),
        ({"R__a.sql": "a", "x/R__a.sql": "b"}, "", "x/R__a.sql have the same description"),
        ({"V1__a.sql": "a", "other.sql": "b"}, "", "but other.sql is not one"),
        ({"V1__a.sql": "a"}, "3", "has no migration '3'"),
        ({"V1__a.sql": "a;\nb ${table};"}, "", r"V1__a\.sql:2: .* placeholder \$\{table\}"),
    ],
)
def test_a_folder_that_is_not_clear_is_refused(
    files: dict[str, str], after: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        migrations(files, CONTEXT, "folder", after)
