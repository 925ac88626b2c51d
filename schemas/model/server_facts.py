"""What a server reports about itself, as far as the meaning of DDL depends on it.

It is one frozen record. The sink asks for it once per connection and reads the target's tables with
it. The command ``check`` judges the target with it.

Source: MySQL Reference Manual, "Server System Variables"; MariaDB, "character_set_collations";
TiDB documentation, "System Variables", "Character Set and Collation".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .charsets import charset_name, collation_name
from .server_context import ServerContext

TIDB_READS_AS = (8, 0, 11)
"""The MySQL version whose syntax TiDB follows. TiDB's option ``server-version`` can change what
VERSION() shows, but not this."""
_TIDB_WITH_CHECKS = (8, 0, 16)
"""The first MySQL that keeps CHECK constraints. TiDB keeps them with
``tidb_enable_check_constraint``."""
_PLAIN = (
    "sql_mode",
    "character_set_server",
    "collation_server",
    "explicit_defaults_for_timestamp",
    "lower_case_table_names",
    "default_collation_for_utf8mb4",
    "character_set_collations",
)
TIDB_VARIABLES = (
    "tidb_enable_check_constraint",
    "tidb_mem_quota_query",
    "tidb_restricted_read_only",
    "tidb_super_read_only",
    "tidb_txn_mode",
)
FACT_VARIABLES = _PLAIN + TIDB_VARIABLES
"""The variables that a server is asked for. A server does not answer for those it does not know."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A server as it is now.

    Attributes:
        kind: ``mysql``, ``mariadb`` or ``tidb``, as ``[target] kind`` writes it.
        version: Numbers of the version. TiDB's own version, not of the MySQL that it resembles.
        version_text: VERSION().
        sql_mode: Upper-case modes.
        charset: ``character_set_server``.
        collation: ``collation_server``.
        default_collations: Charset → its default collation, sorted pairs of canonical names.
        explicit_timestamps: ``explicit_defaults_for_timestamp``.
        lower_case_table_names: The variable of that name.
        variables: TiDB's own, sorted pairs (``TIDB_VARIABLES``); empty for others.
    """

    kind: str
    version: tuple[int, ...]
    version_text: str = ""
    sql_mode: frozenset[str] = frozenset()
    charset: str = "utf8mb4"
    collation: str = ""
    default_collations: tuple[tuple[str, str], ...] = ()
    explicit_timestamps: bool = True
    variables: tuple[tuple[str, str], ...] = ()
    lower_case_table_names: int = 0

    def variable(self, name: str) -> str:
        """The value of a TiDB variable in upper case; "" when the server has no such variable."""
        return dict(self.variables).get(name, "").upper()

    def context(self, database: str, charset: str = "", collation: str = "") -> ServerContext:
        """How the server reads statements about tables of a database.

        Args:
            database: Its name.
            charset: Its default character set. "" when the database does not exist yet: then the
                server's charset and collation count.
            collation: Its default collation.
        """
        version = self.version
        if self.kind == "tidb":
            keeps = self.variable("tidb_enable_check_constraint") in ("ON", "1")
            version = _TIDB_WITH_CHECKS if keeps else TIDB_READS_AS
        return ServerContext(
            flavour="mariadb" if self.kind == "mariadb" else "mysql",
            version=version,
            sql_mode=self.sql_mode,
            charset=charset or self.charset,
            collation=collation if charset else self.collation,
            default_database=database,
            explicit_timestamps=self.explicit_timestamps,
            default_collations=self.default_collations,
        )


def kind_and_version(version_text: str) -> tuple[str, tuple[int, ...]]:
    """The kind of server and the numbers of its own version, from VERSION().

    TiDB reports ``8.0.11-TiDB-v8.5.0``; its first part can be configured. MariaDB behind a proxy
    reports ``5.5.5-10.11.6-MariaDB``.
    """
    text = version_text.lower()
    if found := re.search(r"tidb-v?(\d+(?:\.\d+){0,2})", text):
        return "tidb", _numbers(found[1])
    if "tidb" in text:
        return "tidb", ()
    kind = "mariadb" if "mariadb" in text else "mysql"
    return kind, _numbers(text.removeprefix("5.5.5-") if kind == "mariadb" else text)


def server_facts(
    version_text: str, variables: Mapping[str, str], collations: Mapping[str, str]
) -> ServerFacts:
    """The facts from a server's answers.

    Args:
        version_text: VERSION().
        variables: The answer of SHOW VARIABLES for ``FACT_VARIABLES``, names in lower case.
        collations: Charset → default collation, from ``information_schema.CHARACTER_SETS``.
    """
    kind, version = kind_and_version(version_text)
    defaults = {
        charset_name(charset): collation_name(collation)
        for charset, collation in collations.items()
    }
    # CHARACTER_SETS shows the compiled-in defaults; two variables override them for statements.
    if named := variables.get("default_collation_for_utf8mb4", ""):
        defaults["utf8mb4"] = collation_name(named)
    for pair in filter(None, variables.get("character_set_collations", "").split(",")):
        charset, _, collation = pair.strip().partition("=")
        defaults[charset_name(charset)] = collation_name(collation)
    timestamps = variables.get("explicit_defaults_for_timestamp", "ON")
    return ServerFacts(
        kind,
        version,
        version_text,
        frozenset(filter(None, variables.get("sql_mode", "").upper().split(","))),
        charset_name(variables.get("character_set_server", "utf8mb4")),
        collation_name(variables.get("collation_server", "")),
        tuple(sorted(defaults.items())),
        timestamps.upper() in ("ON", "1"),
        tuple((n, variables[n]) for n in TIDB_VARIABLES if kind == "tidb" and n in variables),
        int(variables.get("lower_case_table_names", "0")),
    )


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+){0,2}", text)
    return tuple(int(number) for number in found[0].split(".")) if found else ()
