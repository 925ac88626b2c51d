"""Generates Python statements that read values of an Avro schema, and compiles functions. Pure.

A general decoder walks the schema for every record; here the walk is made once per schema. Only
numbers and names made here get into the source text; whatever comes from a schema is passed in as
a value.

Source: Avro 1.12 specification, "Binary Encoding". Law: the functions give what fastavro gives
(tests/unit/spark_sink/kafka/test_row_avro.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from struct import Struct, error
from typing import Any

from msgspec import DecodeError

from shardmerge.connectors.formats.avro_wire import INTEGER

WRONG = (IndexError, error, KeyError, ValueError, AttributeError)
"""Errors that can occur when bytes of another schema are read. Such reading can also give wrong
values without an error."""
_KINDS: Mapping[str, type] = {
    "null": type(None), "boolean": bool, "int": int, "long": int, "float": float, "double": float,
    "bytes": bytes, "fixed": bytes, "string": str, "enum": str, "record": dict, "map": dict,
    "array": list,
}  # fmt: skip


class Unreadable(Exception):
    """The schema is not one of row records."""


def kinds_of(schema: Any) -> frozenset[type]:
    """The Python types of a schema's values."""
    schema, kind = kind_of(schema)
    if kind == "union":
        return frozenset[type]().union(*map(kinds_of, schema))
    return frozenset({int if _is_integer(schema) else _KINDS[kind]})


def fields_of(schema: Any) -> dict[str, Any] | None:
    """Field name → schema, of a record or of the only record in a union; None for others."""
    schema, kind = kind_of(schema)
    if kind == "union":
        records = [part for part in schema if kind_of(part)[1] == "record"]
        return fields_of(records[0]) if len(records) == 1 else None
    if kind != "record":
        return None
    return {field["name"]: field["type"] for field in schema["fields"]}


class Code:
    """Statements that are being generated, and the values that they name.

    The statements read from the bytes ``b`` at the index ``p``.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.values: dict[str, Any] = {"varint": _varint, "from_bytes": int.from_bytes}
        self._depth = 1
        self._names = 0

    def put(self, *lines: str) -> None:
        """Add statements."""
        self.lines.extend("    " * self._depth + line for line in lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Begin a compound statement; statements added inside the context are its body."""
        self.put(head)
        self._depth += 1
        yield
        self._depth -= 1

    def value(self, value: Any) -> str:
        """A new name under which the statements can use a value."""
        name = self.name("k")
        self.values[name] = value
        return name

    def name(self, letter: str = "v") -> str:
        """A new name."""
        self._names += 1
        return f"{letter}{self._names}"

    def function(self, head: str) -> Any:
        """Compile the function; it raises ``DecodeError`` for errors in ``WRONG``."""
        self.values |= {"WRONG": WRONG, "DecodeError": DecodeError}
        source = "\n".join(
            [
                f"def {head}:",
                "  try:",
                *self.lines,
                "  except WRONG as error:",
                "    raise DecodeError(str(error)) from None",
            ]
        )
        # The text has only names and numbers made in this module, nothing from a schema.
        exec(source, self.values)  # noqa: S102
        return self.values[head.partition("(")[0]]

    # --- one value: into a variable, or skipped ----------------------------------------------

    def number(self, into: str) -> None:
        """Read a varint without zigzag decoding: a length or an index is then doubled."""
        # Most numbers have one or two bytes, and a function call costs more than reading those.
        more = self.name()
        self.put(f"{into} = b[p]; p += 1")
        with self.block(f"if {into} > 127:"):
            self.put(f"{more} = b[p]; p += 1")
            self.put(f"if {more} < 128: {into} += ({more} << 7) - 128")
            self.put(f"else: {into}, p = varint(b, p, {into} + ({more} << 7) - 16512)")

    def read(self, schema: Any, into: str) -> None:
        """Read a value into a variable."""
        schema, kind = kind_of(schema)
        match kind:
            case "null":
                self.put(f"{into} = None")
            case "boolean":
                self.put(f"{into} = b[p] == 1; p += 1")
            case "int" | "long":
                self.number(into)
                self.put(f"{into} = ({into} >> 1) ^ -({into} & 1)")
            case "float" | "double":
                single = kind == "float"
                unpack = self.value(Struct("<f" if single else "<d").unpack_from)
                self.put(f"{into}, = {unpack}(b, p); p += {4 if single else 8}")
            case "string" | "bytes":
                length = self.name()
                self.number(length)
                self.put(f"{length} = p + ({length} >> 1)")
                whole = f"b[p:{length}]"
                if kind == "string":
                    whole = f"{whole}.decode()"
                elif _is_integer(schema):
                    whole = f"from_bytes({whole}, 'big', signed=True)"
                self.put(f"{into} = {whole}; p = {length}")
            case "fixed":
                self.put(f"{into} = b[p:p + {int(schema['size'])}]; p += {int(schema['size'])}")
            case "enum":
                self.number(into)
                self.put(f"{into} = {self.value(tuple(schema['symbols']))}[{into} >> 1]")
            case "record":
                parts = []
                for field in schema["fields"]:
                    part = self.name()
                    self.read(field["type"], part)
                    parts.append(f"{self.value(field['name'])}: {part}")
                self.put(f"{into} = {{{', '.join(parts)}}}")
            case "union":
                for branch in self.branches(schema):
                    self.read(branch, into)
            case _:
                raise Unreadable(f"a column of Avro's type {kind}")

    def skip(self, schema: Any) -> None:
        """Skip a value."""
        schema, kind = kind_of(schema)
        match kind:
            case "null":
                self.put("pass")
            case "boolean":
                self.put("p += 1")
            case "long":
                self.put(f"p = {self.value(_to_end_of_number)}(b, p).end()")
            case "int" | "enum":
                with self.block("while b[p] > 127:"):
                    self.put("p += 1")
                self.put("p += 1")
            case "float" | "double":
                self.put(f"p += {4 if kind == 'float' else 8}")
            case "string" | "bytes":
                length = self.name()
                self.number(length)
                self.put(f"p += {length} >> 1")
            case "fixed":
                self.put(f"p += {int(schema['size'])}")
            case "record":
                self.put("pass")
                for field in schema["fields"]:
                    self.skip(field["type"])
            case "union":
                for branch in self.branches(schema):
                    self.skip(branch)
            case _:
                raise Unreadable(f"a field of Avro's type {kind}")

    def branches(self, union: list[Any]) -> Iterator[Any]:
        """Yield each branch; the caller adds its statements. Any other branch index raises."""
        which = self.name()
        self.put(f"{which} = b[p]; p += 1")
        for number, branch in enumerate(union):
            with self.block(f"{'elif' if number else 'if'} {which} == {2 * number}:"):
                yield branch
        with self.block("else:"):
            self.put("raise IndexError('no such branch of a union')")


NUMBER = rb"[\x80-\xff]*[\x00-\x7f]"
_to_end_of_number = re.compile(NUMBER).match


def kind_of(schema: Any) -> tuple[Any, str]:
    """A schema without nested ``type`` objects, and its kind: ``union`` or Avro's type name."""
    while isinstance(schema, dict) and not isinstance(schema["type"], str):
        schema = schema["type"]
    if isinstance(schema, list):
        return schema, "union"
    return schema, schema if isinstance(schema, str) else schema["type"]


def _is_integer(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("logicalType") == INTEGER


def _varint(b: bytes, p: int, number: int) -> tuple[int, int]:
    """Read a varint from its third byte on; returns it and the index behind it."""
    shift = 14
    while True:
        part = b[p]
        p += 1
        if part < 128:
            return number | part << shift, p
        number |= (part & 127) << shift
        shift += 7
