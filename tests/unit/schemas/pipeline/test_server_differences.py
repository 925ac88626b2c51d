"""What a server says of itself, compared with the pipeline file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.server_differences import (
    ServerDifference,
    refuse_differences,
    server_context,
    source_differences,
    target_differences,
)
from shardmerge.schemas.pipeline.settings import Source, Target

SOURCE = Source("s1", "h", 3306, "u", "p", 1)
TARGET = Target("h", 3306, "u", "p")


@pytest.mark.parametrize(
    ("source", "version", "mode"),
    [
        (SOURCE, "8.0.36-28 Percona", "STRICT_TRANS_TABLES,NO_ZERO_DATE"),
        (SOURCE, "", ""),
        (Source("s", "h", 1, "u", "p", 1, sql_mode="ansi"), "8.0.1", "ANSI_QUOTES,ANSI"),
        (
            Source("s", "h", 1, "u", "p", 1, flavour="mariadb", version="11"),
            "5.5.5-11.8.9-MariaDB-log",
            "",
        ),
    ],
)
def test_a_server_as_described_differs_in_nothing(source: Source, version: str, mode: str) -> None:
    assert source_differences(source, version, mode) == []
    refuse_differences("source s1", [])


def test_all_faults_are_one_error_that_says_what_to_change() -> None:
    found = source_differences(SOURCE, "10.11.6-MariaDB", "PIPES_AS_CONCAT,ANSI_QUOTES")

    with pytest.raises(ConfigError) as refused:
        refuse_differences("source s1", found)

    assert refused.value.message == (
        "source s1 is not the server that the pipeline file describes: "
        "it is mariadb 10.11.6-MariaDB, the pipeline file says mysql; "
        "sql_mode ANSI_QUOTES is on on the server, the pipeline file says off: statements would be "
        "read wrongly; sql_mode PIPES_AS_CONCAT is on on the server, the pipeline file says off: "
        "statements would be read wrongly"
    )
    assert refused.value.hint == (
        'set flavour = "mariadb" and version = "10.11.6"; '
        'set sql_mode = "ANSI_QUOTES,PIPES_AS_CONCAT"'
    )


@pytest.mark.parametrize("mode", ["REAL_AS_FLOAT", "HIGH_NOT_PRECEDENCE", "ORACLE"])
def test_a_mode_that_changes_types_or_precedence_must_be_told(mode: str) -> None:
    (found, *others) = [
        each for each in source_differences(SOURCE, "8.0.15", mode) if f" {mode} " in each.seen
    ]
    assert (found.fault, others) == (True, [])
    assert mode in found.change.split('"')[1].split(",")
    told = replace(SOURCE, sql_mode=mode)
    assert source_differences(told, "8.0.15", mode) == []


def test_ansi_has_real_as_float_in_it_and_other_combined_modes_do_not() -> None:
    told = replace(SOURCE, sql_mode="ANSI_QUOTES,PIPES_AS_CONCAT,IGNORE_SPACE")
    (found,) = source_differences(told, "8.0.15", "ANSI")
    assert found.seen.startswith("sql_mode REAL_AS_FLOAT is on on the server")
    assert source_differences(told, "8.0.15", "DB2") == []


@pytest.mark.parametrize(
    ("version", "fault"), [("8.0.36", False), ("8.0.14", True), ("8.4.0", True), ("9.7.4-2", True)]
)
def test_a_newer_release_of_the_targets_version_is_no_fault(version: str, fault: bool) -> None:
    (found,) = target_differences(TARGET, version)

    assert found.fault is fault
    assert found.change == f'set version = "{version.partition("-")[0]}"'
    if not fault:
        refuse_differences("the target", [found])


def test_a_tidb_is_no_mysql() -> None:
    assert target_differences(TARGET, "8.0.11-TiDB-v8.5.0") == [
        ServerDifference(
            "it is tidb 8.0.11-TiDB-v8.5.0, the pipeline file says mysql",
            'set kind = "tidb" and version = "8.5.0"',
            "SM-6105",
        )
    ]


@pytest.mark.parametrize(
    ("told", "real", "fault"),
    [
        (0, "0", None),
        (1, "2", None),
        (2, "1", None),
        (0, "", None),
        (0, "1", False),
        (1, "0", True),
    ],
)
def test_names_of_tables_are_compared_as_described(
    told: int, real: str, fault: bool | None
) -> None:
    source = replace(SOURCE, lower_case_table_names=told)
    found = source_differences(source, SOURCE.version, "", real)
    assert [each.fault for each in found] == ([] if fault is None else [fault])
    assert all(each.change == f"set lower_case_table_names = {real}" for each in found)
    assert server_context(source).lower_names is bool(told)


def test_no_other_way_to_compare_names_is_known() -> None:
    with pytest.raises(ConfigError, match="must be 0, 1 or 2"):
        replace(SOURCE, lower_case_table_names=3)


@pytest.mark.parametrize(
    ("version", "told", "real", "fault"),
    [
        ("8.0.15", "", "1", False),
        ("5.7.22", "", "0", False),
        ("5.7.22", "", "", False),
        ("5.7.22", "", "1", True),
        ("5.7.22", "ON", "ON", False),
        ("8.0.15", "", "OFF", True),
        ("8.0.15", "ON", "0", True),
    ],
)
def test_timestamps_that_say_nothing_are_read_as_the_server_makes_them(
    version: str, told: str, real: str, fault: bool
) -> None:
    source = replace(SOURCE, version=version, explicit_defaults_for_timestamp=told)
    found = source_differences(source, version, "", "0", real)
    assert [each.code for each in found] == (["SM-6115"] if fault else [])
    is_on = "ON" if real in ("1", "ON") else "OFF"
    for each in found:
        assert each.fault
        assert each.change == f"set explicit_defaults_for_timestamp = '{is_on}'"
        right = replace(source, explicit_defaults_for_timestamp=is_on)
        assert source_differences(right, version, "", "0", real) == []
        assert server_context(right).has_explicit_timestamps is (is_on == "ON")


def test_no_other_way_to_make_timestamps_is_known() -> None:
    with pytest.raises(ConfigError, match="must be 'ON' or 'OFF', not 'yes'"):
        replace(SOURCE, explicit_defaults_for_timestamp="yes")
