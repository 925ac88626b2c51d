"""MySQL column types as normalised values."""

from __future__ import annotations

from dataclasses import dataclass

from .frozen import made_at_once

INTEGER_NAMES = ("tinyint", "smallint", "mediumint", "int", "bigint")
"""From narrow to wide."""
TEXT_NAMES = ("tinytext", "text", "mediumtext", "longtext")
BLOB_NAMES = ("tinyblob", "blob", "mediumblob", "longblob")
STRING_NAMES = ("char", "varchar", *TEXT_NAMES)
"""Types that carry a character set, with enum and set."""
BINARY_NAMES = ("binary", "varbinary", *BLOB_NAMES)
TEMPORAL_NAMES = ("date", "time", "datetime", "timestamp", "year")
SPATIAL_NAMES = (
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
)
WITHOUT_LITERAL_DEFAULT = frozenset({*TEXT_NAMES, *BLOB_NAMES, "json", *SPATIAL_NAMES})
"""MySQL refuses a literal as the default of these types; when not strict, it drops the literal."""


@made_at_once
@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column type in its one canonical form; only ``normalize`` and the grammar build it.

    Attributes:
        name: Lower-case canonical name (``int``, not ``integer``; ``decimal``, not ``numeric``).
        length: Characters for char and varchar, bytes for binary and varbinary, bits for bit,
            digits for decimal (precision) and for float or double with a display precision.
            None where the type has none. Display widths of integers are not kept, except length 1
            of ``tinyint(1)``, which clients read as a boolean; that length is not part of the
            lattice value.
        scale: Decimal digits after the point; None elsewhere.
        unsigned: For integers, decimal, float and double.
        zerofill: Implies unsigned.
        fsp: Fractional seconds digits of time, datetime and timestamp, 0 to 6.
        charset: Character set of strings, enum and set (``utf8mb3``, never ``utf8``); else "".
        collation: Collation of the same; "" means "the charset's default".
        elements: Values of enum and set, in order.
        srid: Spatial reference system of spatial types; None when not given.
    """

    name: str
    length: int | None = None
    scale: int | None = None
    unsigned: bool = False
    zerofill: bool = False
    fsp: int = 0
    charset: str = ""
    collation: str = ""
    elements: tuple[str, ...] = ()
    srid: int | None = None

    @property
    def is_integer(self) -> bool:
        """Whether values are whole numbers (bit and year are not integers)."""
        return self.name in INTEGER_NAMES

    @property
    def is_string(self) -> bool:
        """Whether values are text with a charset (enum and set are not strings)."""
        return self.name in STRING_NAMES

    @property
    def is_binary(self) -> bool:
        """Whether values are bytes (bit and spatial types are not)."""
        return self.name in BINARY_NAMES
