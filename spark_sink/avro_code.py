"""Compiles Avro schemas of row records into Python functions. Pure.

A general decoder walks the schema for every record and makes objects of everything in it; it costs
ten times what JSON costs. Here the walk is made once per schema: it writes the statements that read
exactly one envelope, passing over what nobody reads. Only numbers and names made here get into the
source text; whatever comes from a schema is passed in as a value.

Source: Avro 1.12 specification, "Binary Encoding". Law: it gives what fastavro gives,
tests/unit/spark_sink/test_row_avro.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from struct import Struct, error
from typing import Any

from msgspec import DecodeError

from shardmerge.connectors.avro_wire import HEAD_BYTES, INTEGER

WRONG = (IndexError, error, KeyError, ValueError, AttributeError)
"""What reading the bytes of another schema leads to, where it does not just give other values."""
_KINDS: Mapping[str, type] = {
    "null": type(None), "boolean": bool, "int": int, "long": int, "float": float, "double": float,
    "bytes": bytes, "fixed": bytes, "string": str, "enum": str, "record": dict, "map": dict,
    "array": list,
}  # fmt: skip


class Unreadable(Exception):
    """A schema is not one that rows have."""


def kinds_of(schema: Any) -> frozenset[type]:
    """The Python types of a schema's values."""
    schema, kind = _kind(schema)
    if kind == "union":
        return frozenset[type]().union(*map(kinds_of, schema))
    return frozenset({int if _is_integer(schema) else _KINDS[kind]})


def fields_of(schema: Any) -> dict[str, Any] | None:
    """Name → schema of a record's fields, or of the only record among a union's branches."""
    schema, kind = _kind(schema)
    if kind == "union":
        records = [part for part in schema if _kind(part)[1] == "record"]
        return fields_of(records[0]) if len(records) == 1 else None
    if kind != "record":
        return None
    return {field["name"]: field["type"] for field in schema["fields"]}


class _Code:
    """Statements being written, and the values that they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.values: dict[str, Any] = {"varint": _varint, "from_bytes": int.from_bytes}
        self._depth = 1
        self._names = 0

    def put(self, *lines: str) -> None:
        self.lines.extend("    " * self._depth + line for line in lines)

    def block(self, head: str) -> _Block:
        self.put(head)
        return _Block(self)

    def value(self, value: Any) -> str:
        """A name for a value."""
        name = self.name("k")
        self.values[name] = value
        return name

    def name(self, letter: str = "v") -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def indent(self, by: int) -> None:
        self._depth += by

    def function(self, head: str) -> Any:
        """The function; what bytes of another schema lead to is a ``DecodeError``."""
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
        # Names and numbers of this module alone: nothing of a schema is in the text.
        exec(source, self.values)  # noqa: S102
        return self.values[head.partition("(")[0]]

    # --- one value: into a variable, or passed over ------------------------------------------

    def number(self, into: str) -> None:
        """A varint, as it is: twice the length or the count that it means, where it means one."""
        # Most numbers have one or two bytes: a call costs more than reading them.
        more = self.name()
        self.put(f"{into} = b[p]; p += 1")
        with self.block(f"if {into} > 127:"):
            self.put(f"{more} = b[p]; p += 1")
            self.put(f"if {more} < 128: {into} += ({more} << 7) - 128")
            self.put(f"else: {into}, p = varint(b, p, {into} + ({more} << 7) - 16512)")

    def read(self, schema: Any, into: str) -> None:
        """A value into a variable."""
        schema, kind = _kind(schema)
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
        """Pass over a value."""
        schema, kind = _kind(schema)
        match kind:
            case "null":
                self.put("pass")
            case "boolean":
                self.put("p += 1")
            case "long":
                self.put(f"p = {self.value(_NUMBER)}(b, p).end()")
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
        """Inside the loop's body: the statements of one branch. The other indexes are errors."""
        which = self.name()
        self.put(f"{which} = b[p]; p += 1")
        for number, branch in enumerate(union):
            with self.block(f"{'elif' if number else 'if'} {which} == {2 * number}:"):
                yield branch
        with self.block("else:"):
            self.put("raise IndexError('no such branch of a union')")


class _Block:
    def __init__(self, code: _Code) -> None:
        self._code = code

    def __enter__(self) -> None:
        self._code.indent(1)

    def __exit__(self, *_: object) -> None:
        self._code.indent(-1)


def envelope_reader(
    schema: Any,
    identity: Mapping[str, str],
    ops: frozenset[str],
    columns: tuple[str, ...],
    make: Mapping[str, Callable[..., Any]],
) -> Callable[[bytes], Any]:
    """A record's value → its envelope.

    Args:
        schema: Expanded, of Debezium's envelopes.
        identity: Fields of ``source`` and the texts that they must have.
        ops: The operations that are read.
        columns: What an image must have, in the order in which it is made.
        make: ``Image`` of the columns' values, ``Source`` of ``file`` and ``pos``, ``Envelope`` of
            ``op``, ``source``, ``before`` (where it stands: record and place, or None), ``after``.

    Raises:
        Unreadable: Rows of this schema are not such rows.
    """
    fields = fields_of(schema)
    if fields is None or not {"op", "source", "before", "after"} <= fields.keys():
        raise Unreadable("no envelope")
    code = _Code()
    code.values |= make
    code.put(f"p = {HEAD_BYTES}")
    missing = {"op", "source", "before", "after"}
    for name, field in fields.items():
        if not missing:
            break  # only times follow
        missing.discard(name)
        match name:
            case "before":
                code.put("before = (b, p)")
                _skip_image(code, field)
            case "after":
                _read_image(code, field, columns, "after")
            case "source":
                _read_source(code, field, identity)
            case "op":
                code.read(field, "op")
                with code.block(f"if op not in {code.value(ops)}:"):
                    code.put("raise ValueError('another operation')")
            case _:
                code.skip(field)
    code.put("return Envelope(op, source, before, after)")
    reader: Callable[[bytes], Any] = code.function("envelope(b)")
    return reader


def image_reader(
    schema: Any, columns: tuple[str, ...], make: Callable[..., Any]
) -> Callable[[tuple[bytes, int]], Any]:
    """The place of a ``before`` (see ``envelope_reader``) → its image, or None.

    Raises:
        Unreadable: Its columns are other ones.
    """
    fields = fields_of(schema)
    if fields is None or "before" not in fields:
        raise Unreadable("no envelope")
    code = _Code()
    code.values["Image"] = make
    code.put("b, p = place")
    _read_image(code, fields["before"], columns, "image")
    with code.block("if image is None:"):
        code.put("raise ValueError('no row image')")
    code.put("return image")
    reader: Callable[[tuple[bytes, int]], Any] = code.function("image(place)")
    return reader


def _skip_image(code: _Code, schema: Any) -> None:
    code.skip(schema)


def _read_image(code: _Code, schema: Any, columns: tuple[str, ...], into: str) -> None:
    fields = fields_of(schema)
    if fields is None or fields.keys() != set(columns):
        raise Unreadable("other columns")
    schema, kind = _kind(schema)
    for branch in code.branches(schema) if kind == "union" else (schema,):
        if _kind(branch)[1] == "null":
            code.put(f"{into} = None")
            continue
        variables = {name: code.name() for name in fields}
        for name, field in fields.items():
            code.read(field, variables[name])
        code.put(f"{into} = Image({', '.join(variables[name] for name in columns)})")


def _read_source(code: _Code, schema: Any, identity: Mapping[str, str]) -> None:
    fields = fields_of(schema)
    if fields is None or not {"file", "pos", *identity} <= fields.keys():
        raise Unreadable("no source block")
    if _kind(schema)[1] != "record":
        raise Unreadable("a source block that may be null")
    for name, field in fields.items():
        if name in identity:
            written = _written(field, identity[name])
            with code.block(f"if not b.startswith({code.value(written)}, p):"):
                code.put("raise ValueError('a row of another table')")
            code.put(f"p += {len(written)}")
        elif name in ("file", "pos"):
            code.read(field, name)
        else:
            code.skip(field)
    code.put("source = Source(file, pos)")


def _written(schema: Any, text: str) -> bytes:
    """A text as it is written under a schema: a string, or one of a union's branches."""
    schema, kind = _kind(schema)
    if kind == "union":
        kinds = [_kind(branch)[1] for branch in schema]
        if "string" in kinds:
            return bytes([2 * kinds.index("string")]) + _written("string", text)
    if kind != "string":
        raise Unreadable(f"a source block with a name of type {kind}")
    data = text.encode()
    length = 2 * len(data)
    # Names of MySQL have 64 characters at most.
    head = [length] if length < 128 else [length & 127 | 128, length >> 7]
    return bytes(head) + data


_NUMBER = re.compile(rb"[\x80-\xff]*[\x00-\x7f]", re.DOTALL).match


def _kind(schema: Any) -> tuple[Any, str]:
    """A schema without wrappings, and its kind."""
    while isinstance(schema, dict) and not isinstance(schema["type"], str):
        schema = schema["type"]
    if isinstance(schema, list):
        return schema, "union"
    return schema, schema if isinstance(schema, str) else schema["type"]


def _is_integer(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("logicalType") == INTEGER


def _varint(b: bytes, p: int, number: int) -> tuple[int, int]:
    """A number from its third byte on, and the place behind it."""
    shift = 14
    while True:
        part = b[p]
        p += 1
        if part < 128:
            return number | part << shift, p
        number |= (part & 127) << shift
        shift += 7
