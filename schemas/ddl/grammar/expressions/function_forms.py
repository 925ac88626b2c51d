"""The forms in which servers store functions: one name for synonyms, and omitted arguments.

Where servers differ, the text here is one that all of them understand, if there is one.

Source: measured, SHOW CREATE TABLE of MySQL 5.7, 8.0 and 9.7, MariaDB 10.11 and 11.8
(tests/integration/mysql/test_stored_expressions.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from shardmerge.schemas.model.server_context import ServerContext

NILADIC = {
    "CURRENT_TIMESTAMP": "now", "LOCALTIME": "now", "LOCALTIMESTAMP": "now",
    "CURRENT_DATE": "curdate", "CURRENT_TIME": "curtime", "UTC_DATE": "utc_date",
    "UTC_TIME": "utc_time", "UTC_TIMESTAMP": "utc_timestamp", "CURRENT_USER": "current_user",
}  # fmt: skip
_SYNONYMS = {
    **{name.lower(): target for name, target in NILADIC.items()},
    "substring": "substr", "mid": "substr", "lcase": "lower", "ucase": "upper", "power": "pow",
    "ceil": "ceiling", "day": "dayofmonth", "adddate": "date_add", "subdate": "date_sub",
    "character_length": "char_length", "octet_length": "length", "lengthb": "length",
    "sha1": "sha", "std": "stddev", "session_user": "user", "system_user": "user",
    "schema": "database", "atan2": "atan", "nvl": "ifnull", "json_merge": "json_merge_preserve",
    "string_to_vector": "to_vector", "vector_to_string": "from_vector",
    "st_asbinary": "st_aswkb", "st_aswkt": "st_astext", "geomcollection": "geometrycollection",
    "st_numinteriorring": "st_numinteriorrings", "srid": "st_srid", "mbrequal": "mbrequals",
}  # fmt: skip
_OLD_GEOMETRY = {
    **{name: f"st_{name}" for name in (
        "area", "boundary", "buffer", "centroid", "convexhull", "crosses", "dimension", "distance",
        "endpoint", "envelope", "exteriorring", "geometryn", "geometrytype", "interiorringn",
        "isclosed", "isempty", "isring", "issimple", "numgeometries", "numinteriorrings",
        "numpoints", "pointn", "pointonsurface", "startpoint", "touches", "x", "y",
    )},
    "asbinary": "st_aswkb", "aswkb": "st_aswkb", "astext": "st_astext", "aswkt": "st_astext",
    "glength": "st_length", "disjoint": "mbrdisjoint", "intersects": "mbrintersects",
    "overlaps": "mbroverlaps",
}  # fmt: skip
"""Names that MySQL 8 does not have any more."""
_OLD_MYSQL = {"contains": "mbrcontains", "equals": "mbrequals", "within": "mbrwithin"}
_MARIADB = {
    "contains": "st_contains", "equals": "st_equals", "within": "st_within",
    "mbrtouches": "st_touches", "json_pretty": "json_detailed",
}  # fmt: skip
_READ_GEOMETRY = re.compile(
    r"(?:st_)?(?:geom|geometry|geomcoll|geometrycollection|point|line|linestring|poly|polygon"
    r"|mpoint|multipoint|mline|multilinestring|mpoly|multipolygon)from(te?xt|wkb)"
)
"""Matches functions that MySQL 8 distinguishes by the kind of geometry that they accept."""
_FORMS = {
    ("round", 1): "round({0},0)",
    # Without a mode it is the session's default_week_format, which is 0 unless somebody sets it.
    ("week", 1): "week({0},0)",
    ("weekofyear", 1): "week({0},3)",
    ("yearweek", 1): "yearweek({0},0)",
    ("bin", 1): "conv({0},10,2)",
    ("oct", 1): "conv({0},10,8)",
    ("from_unixtime", 2): "date_format(from_unixtime({0}),{1})",
}
"""(Name, number of arguments) → what servers store."""
_MYSQL_FORMS = {("json_length", 2): "json_length(json_extract({0},{1}))"}
"""What MySQL 9.7 stores; 8.0 and MariaDB store what was written."""
_MARIADB_FORMS = {
    ("add_months", 2): "({0} + interval {1} month)",
    ("to_char", 1): "to_char({0},'YYYY-MM-DD HH24:MI:SS')",
}


def stored_name(name: str, context: ServerContext) -> str:
    """The name that servers print for a function; both are in lower case."""
    name = _SYNONYMS.get(name, name)
    if context.at_least(80000, None):
        return name
    if (found := _READ_GEOMETRY.fullmatch(name)) is not None:
        return "st_geometryfromwkb" if found[1] == "wkb" else "st_geometryfromtext"
    own = _MARIADB if context.is_mariadb else _OLD_MYSQL
    return own.get(name) or _OLD_GEOMETRY.get(name, name)


def stored_call(name: str, arguments: Sequence[str], context: ServerContext) -> str:
    """The text that servers print for a function, called by its ``stored_name``."""
    kind = (name, len(arguments))
    if context.is_mariadb and kind == ("chr", 1):
        return f"char({arguments[0]} using {context.charset})"
    if context.is_mariadb and name == "column_delete":
        removed = "".join(f",{each},null as int" for each in arguments[1:])
        return f"column_add({arguments[0]}{removed})"
    own = _MARIADB_FORMS if context.is_mariadb else _MYSQL_FORMS
    form = _FORMS.get(kind) or own.get(kind)
    return f"{name}({','.join(arguments)})" if form is None else form.format(*arguments)
