"""Which features MySQL and MariaDB servers have, by version: one line per feature.

Source: MySQL 5.7 to 9.x Reference Manuals and release notes; MariaDB's; measured where it says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from shardmerge.schemas.model.server_context import ServerContext


@dataclass(frozen=True, slots=True)
class Feature:
    """The first versions with a feature, written as in version comments; None is "none yet"."""

    mysql: int | None
    mariadb: int | None

    def is_in(self, server: ServerContext) -> bool:
        """Whether the server has it."""
        return server.at_least(self.mysql, self.mariadb)


RENAME_COLUMN = Feature(80003, 100502)
"""Older servers rename only with CHANGE COLUMN and the whole definition."""
DROPS_CHECKS = Feature(80016, 100201)
"""Older servers parse a CHECK and ignore it. A check is added only where it can be dropped."""
EXPRESSION_DEFAULTS = Feature(80013, 100201)
TEXT_LITERAL_DEFAULTS = Feature(None, 100201)
"""Plain literals as defaults of TEXT and BLOB columns."""
FUNCTIONAL_INDEXES = Feature(80013, None)
MULTI_VALUED_INDEXES = Feature(80017, None)
DESCENDING_INDEXES = Feature(80001, 100800)
"""Older servers parse DESC and ignore it."""
VECTOR_INDEXES = Feature(None, 110701)
INDEX_PARSERS = Feature(50706, None)
NOT_NULL_GENERATED = Feature(50706, None)
UNENFORCED_CHECKS = Feature(80016, None)
COLLATIONS_0900 = Feature(80001, None)
"""UCA 9.0.0 without padding. MariaDB 11.4.5 reads the names as aliases of its UCA 14.0.0 ones."""
COLLATION_0900_BIN = Feature(80017, None)
COLLATIONS_UCA1400 = Feature(None, 101001)
SPATIAL_REFERENCES = Feature(80003, None)
EXPLICIT_TIMESTAMPS = Feature(80002, 101000)
"""On older servers a NOT NULL TIMESTAMP without a default gets one from the server."""
NATIVE_JSON = Feature(50708, None)
TYPES = {
    "vector": Feature(90000, 110700),
    "uuid": Feature(None, 100700),
    "inet4": Feature(None, 101000),
    "inet6": Feature(None, 100500),
}
"""Types that not every server has."""
FUNCTIONS = {
    "regexp_like": Feature(80004, None),
    "regexp_replace": Feature(80004, 100005),
    "regexp_instr": Feature(80004, 100005),
    "regexp_substr": Feature(80004, 100005),
    "uuid_to_bin": Feature(80000, None),
    "bin_to_uuid": Feature(80000, None),
    "is_uuid": Feature(80000, None),
    "json_value": Feature(80021, 100203),
    "json_overlaps": Feature(80017, 100900),
    "json_schema_valid": Feature(80017, 110100),
    "json_storage_size": Feature(50722, None),
    "json_pretty": Feature(50722, None),
    "any_value": Feature(50705, None),
    "sys_guid": Feature(None, 100601),
    "natural_sort_key": Feature(None, 100701),
    "to_char": Feature(None, 100601),
    "chr": Feature(None, 100301),
    "json_detailed": Feature(None, 100204),
    "json_exists": Feature(None, 100201),
    "json_query": Feature(None, 100203),
    "json_compact": Feature(None, 100204),
}
"""Functions of stored expressions that not every server has."""

_STORED_ESCAPE = Feature(80016, 0)
"""MySQL 5.7 and 8.0.15 store LIKE without its ESCAPE, and execute what they stored (measured)."""

_RETURNING = re.compile(r" returning (?!char\(512\))")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`", re.DOTALL)
_CALLS = re.compile(r"'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`|\b([a-z_0-9]+)\(", re.DOTALL)


def missing_function(expression: str, server: ServerContext) -> str:
    """The first function in a canonical expression that the server lacks; "" when it has all."""
    for match in _CALLS.finditer(expression):
        name = match[1]
        if name in FUNCTIONS and not FUNCTIONS[name].is_in(server):
            return name
    # What MySQL stores for a text without RETURNING has none in MariaDB's form.
    if server.is_mariadb and _RETURNING.search(_QUOTED.sub("", expression)):
        return "JSON_VALUE ... RETURNING"
    if " member of (" in expression and not MULTI_VALUED_INDEXES.is_in(server):
        return "member of"
    return ""


def stored_otherwise(expression: str, server: ServerContext) -> str:
    """Why the server computes something else of a canonical expression; "" when it does not."""
    if " escape " in _QUOTED.sub("", expression) and not _STORED_ESCAPE.is_in(server):
        return "the target stores LIKE without its ESCAPE"
    return ""
