"""What the parser must know about the server that a statement comes from."""

from __future__ import annotations

from dataclasses import dataclass, field

from .charsets import default_collation
from .frozen import Hashed, hashed_once

COMBINED_MODES = frozenset({"ANSI", "ORACLE", "DB2", "MSSQL", "POSTGRESQL", "MAXDB"})
"""SQL modes that stand for several: ANSI_QUOTES, PIPES_AS_CONCAT and IGNORE_SPACE are in each."""


@hashed_once
@dataclass(frozen=True, slots=True)
class ServerContext(Hashed):
    """The properties of a server that the meaning of its statements depends on.

    Attributes:
        flavour: ``mysql`` or ``mariadb``.
        version: Numbers of the version, one to three. Without a patch number, the newest of the
            series is meant.
        sql_mode: Upper-case modes. ``ANSI`` counts as ANSI_QUOTES and the other modes in it, and
            likewise the other ``COMBINED_MODES``.
        charset: Default character set for a table that names none: the server's, or the one of
            the table's database.
        collation: Its collation; "" is the charset's default.
        default_database: Database of unqualified table names.
        explicit_timestamps: ``explicit_defaults_for_timestamp``; None is the version's default.
        default_collations: Charset → default collation, canonical names, as the server reports
            them. For other charsets the default of the version counts.
        lower_names: Whether names of databases and tables are the same in upper and lower case,
            and are read in lower case (``lower_case_table_names`` is 1 or 2).
    """

    flavour: str = "mysql"
    version: tuple[int, ...] = (8, 0)
    sql_mode: frozenset[str] = field(default=frozenset())
    charset: str = "utf8mb4"
    collation: str = ""
    default_database: str = ""
    explicit_timestamps: bool | None = None
    default_collations: tuple[tuple[str, str], ...] = ()
    lower_names: bool = False

    def as_named(self, name: str) -> str:
        """A name of a database or table, as the server compares it."""
        return name.lower() if self.lower_names else name

    @property
    def is_mariadb(self) -> bool:
        """Whether the server is MariaDB; everything else counts as MySQL."""
        return self.flavour == "mariadb"

    def default_collation(self, charset: str) -> str:
        """The collation that a character set has when none is given."""
        for name, collation in self.default_collations:
            if name == charset:
                return collation
        return default_collation(charset, self.version_number, mariadb=self.is_mariadb)

    @property
    def version_number(self) -> int:
        """The version as version comments write it: 80036 for 8.0.36, 101100 for 10.11.0."""
        parts = (*self.version, 99, 99, 99)
        minor = parts[1] if len(self.version) > 1 else 99
        return parts[0] * 10000 + minor * 100 + parts[2]

    def at_least(self, mysql: int | None, mariadb: int | None) -> bool:
        """Whether the server is at least that version of its flavour; None is "never"."""
        wanted = mariadb if self.is_mariadb else mysql
        return wanted is not None and self.version_number >= wanted

    @property
    def is_oracle(self) -> bool:
        """Whether MariaDB reads statements as Oracle does."""
        return self.is_mariadb and "ORACLE" in self.sql_mode

    @property
    def ansi_quotes(self) -> bool:
        """Whether double quotes quote names instead of strings."""
        return bool(self.sql_mode & {"ANSI_QUOTES", *COMBINED_MODES})

    @property
    def backslash_escapes(self) -> bool:
        """Whether a backslash in a string begins an escape."""
        return "NO_BACKSLASH_ESCAPES" not in self.sql_mode

    @property
    def pipes_as_concat(self) -> bool:
        """Whether ``||`` joins strings."""
        return bool(self.sql_mode & {"PIPES_AS_CONCAT", *COMBINED_MODES})

    @property
    def not_is_high(self) -> bool:
        """Whether NOT binds as tightly as ``!``."""
        return "HIGH_NOT_PRECEDENCE" in self.sql_mode

    @property
    def real_as_float(self) -> bool:
        """Whether REAL is FLOAT."""
        return bool(self.sql_mode & {"REAL_AS_FLOAT", "ANSI"})

    @property
    def has_explicit_timestamps(self) -> bool:
        """Whether TIMESTAMP columns are nullable and have no default unless they say so.

        Source: MySQL 8.0.2 and MariaDB 10.10 changed the default to ON.
        """
        if self.explicit_timestamps is not None:
            return self.explicit_timestamps
        return self.at_least(80002, 101000)

    @property
    def stores_checks(self) -> bool:
        """Whether CHECK constraints are kept (MySQL before 8.0.16 parses and forgets them)."""
        return self.at_least(80016, 100201)
