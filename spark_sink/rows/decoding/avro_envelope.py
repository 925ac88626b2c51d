"""Compiles readers of Debezium's envelopes in Avro. Pure.

A general decoder makes objects of everything in a record, and takes ten times as long as for JSON.
A compiled reader reads what the fold needs, and skips the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from shardmerge.connectors.debezium.envelope import EPOCH_FIELD
from shardmerge.connectors.formats.avro_wire import HEAD_BYTES

from .avro_code import NUMBER, Code, Unreadable, fields_of, kind_of


def envelope_reader(
    schema: Any,
    *,
    identity: Mapping[str, str],
    likely: Mapping[str, Any],
    ops: frozenset[str],
    columns: tuple[str, ...],
    make: Mapping[str, Callable[..., Any]],
    epoch: int = 0,
) -> Callable[[bytes], Any]:
    """Compile a function: a record's value → its envelope.

    Args:
        schema: The expanded schema of Debezium's envelopes.
        identity: Fields of ``source``, and the texts that they must have.
        likely: An example of a ``source`` block: most records have the same texts in theirs.
        ops: The operations that are read.
        columns: The columns that an image must have, in the order in which ``Image`` takes them.
        make: The classes of the results, by name. ``Image`` takes the columns' values; ``Source``
            takes ``file`` and ``pos``; ``Envelope`` takes ``op``, ``source``, ``before`` (not
            decoded: the record, and the index in it) and ``after``.
        epoch: The source's epoch, which records must name.

    Raises:
        Unreadable: Records of this schema are not such rows.
    """
    fields = fields_of(schema)
    if fields is None or not {"op", "source", "before", "after"} <= fields.keys():
        raise Unreadable("no envelope")
    code = Code()
    code.values |= make
    code.put(f"p = {HEAD_BYTES}")
    missing = {"op", "source", "before", "after"}
    if EPOCH_FIELD in fields:
        missing.add(EPOCH_FIELD)
    elif epoch:
        raise Unreadable("no epoch")
    for name, field in fields.items():
        if not missing:
            break  # only timestamps follow
        missing.discard(name)
        match name:
            case "before":
                code.put("before = (b, p)")
                _skip_image(code, field)
            case "after":
                _read_image(code, field, columns, "after")
            case "source":
                _read_source(code, field, identity, likely)
            case "op":
                code.read(field, "op")
                with code.block(f"if op not in {code.value(ops)}:"):
                    code.put("raise ValueError('another operation')")
            case _ if name == EPOCH_FIELD:
                code.read(field, "epoch")
                with code.block(f"if epoch != {code.value(str(epoch) if epoch else None)}:"):
                    code.put("raise ValueError('another epoch')")
            case _:
                code.skip(field)
    code.put("return Envelope(op, source, before, after)")
    reader: Callable[[bytes], Any] = code.function("envelope(b)")
    return reader


def image_reader(
    schema: Any, columns: tuple[str, ...], make: Callable[..., Any]
) -> Callable[[tuple[bytes, int]], Any]:
    """Compile a function: a ``before`` from ``envelope_reader`` → its image.

    The function raises ``DecodeError`` when there is no image.

    Raises:
        Unreadable: The schema's image has other columns.
    """
    fields = fields_of(schema)
    if fields is None or "before" not in fields:
        raise Unreadable("no envelope")
    code = Code()
    code.values["Image"] = make
    code.put("b, p = place")
    _read_image(code, fields["before"], columns, "image")
    with code.block("if image is None:"):
        code.put("raise ValueError('no row image')")
    code.put("return image")
    reader: Callable[[tuple[bytes, int]], Any] = code.function("image(place)")
    return reader


def names_reader(schema: Any) -> Callable[[bytes], tuple[str, str, str]]:
    """Compile a function: a record's value → source, database and table of its ``source`` block.

    Raises:
        Unreadable: Records of this schema do not name them.
    """
    fields = fields_of(schema) or {}
    of_source = fields_of(fields["source"]) if "source" in fields else None
    if of_source is None or not {"name", "db", "table"} <= of_source.keys():
        raise Unreadable("no source block")
    if kind_of(fields["source"])[1] != "record":
        raise Unreadable("a source block that may be null")
    code = Code()
    code.put(f"p = {HEAD_BYTES}")
    for name, field in fields.items():
        if name == "source":
            break
        code.skip(field)
    missing = {"name", "db", "table"}
    for name, field in of_source.items():
        if name in missing:
            missing.discard(name)
            code.read(field, name)
        else:
            code.skip(field)
        if not missing:
            break
    # A slice beyond the end of the bytes gives a shorter text, not an error.
    with code.block("if p > len(b) or None in (name, db, table):"):
        code.put("raise IndexError('no names')")
    code.put("return name, db, table")
    reader: Callable[[bytes], tuple[str, str, str]] = code.function("names(b)")
    return reader


def _skip_image(code: Code, schema: Any) -> None:
    code.skip(schema)


def _read_image(code: Code, schema: Any, columns: tuple[str, ...], into: str) -> None:
    fields = fields_of(schema)
    if fields is None or fields.keys() != set(columns):
        raise Unreadable("other columns")
    schema, kind = kind_of(schema)
    for branch in code.branches(schema) if kind == "union" else (schema,):
        if kind_of(branch)[1] == "null":
            code.put(f"{into} = None")
            continue
        variables = {name: code.name() for name in fields}
        for name, field in fields.items():
            code.read(field, variables[name])
        code.put(f"{into} = Image({', '.join(variables[name] for name in columns)})")


def _read_source(
    code: Code, schema: Any, identity: Mapping[str, str], likely: Mapping[str, Any]
) -> None:
    fields = fields_of(schema)
    if fields is None or not {"file", "pos", *identity} <= fields.keys():
        raise Unreadable("no source block")
    if kind_of(schema)[1] != "record":
        raise Unreadable("a source block that may be null")
    run: dict[str, Any] = {}
    for name, field in fields.items():
        if name not in ("file", "pos"):
            run[name] = field
            continue
        _pass_over(code, run, identity, likely)
        run = {}
        code.read(field, name)
    _pass_over(code, run, identity, likely)
    code.put("source = Source(file, pos)")


def _pass_over(
    code: Code, run: Mapping[str, Any], identity: Mapping[str, str], likely: Mapping[str, Any]
) -> None:
    """Skip fields of the source block, and check those that name the table.

    Between rows hardly anything but numbers changes in these fields. So one regular expression
    matches them all; the fields are read one by one only when it does not match.
    """
    if not run:
        return
    likely = {**likely, **identity}
    patterns = [_likely_bytes(field, likely.get(name)) for name, field in run.items()]
    whole = b"".join(pattern for pattern in patterns if pattern is not None)
    found = code.name()
    if None not in patterns:
        code.put(f"{found} = {code.value(re.compile(whole, re.DOTALL).match)}(b, p)")
    else:
        code.put(f"{found} = None")
    with code.block(f"if {found}:"):
        code.put(f"p = {found}.end()")
    with code.block("else:"):
        for name, field in run.items():
            if name not in identity:
                code.skip(field)
                continue
            written = _written(field, identity[name])
            with code.block(f"if not b.startswith({code.value(written)}, p):"):
                code.put("raise ValueError('a row of another table')")
            code.put(f"p += {len(written)}")


def _likely_bytes(schema: Any, value: Any) -> bytes | None:
    """A pattern for the bytes of a field: any number, or the text of ``value``; None: unknown."""
    schema, kind = kind_of(schema)
    if kind in ("int", "long"):
        return NUMBER
    if kind == "string" and isinstance(value, str):
        return re.escape(_written("string", value))
    if kind != "union":
        return None
    ways = []
    for number, branch in enumerate(schema):
        inner = b"" if kind_of(branch)[1] == "null" else _likely_bytes(branch, value)
        if inner is not None:
            ways.append(re.escape(bytes([2 * number])) + inner)
    return b"(?:" + b"|".join(ways) + b")"


def _written(schema: Any, text: str) -> bytes:
    """The bytes of a text under a schema: a string, or a union that has a string branch."""
    schema, kind = kind_of(schema)
    if kind == "union":
        kinds = [kind_of(branch)[1] for branch in schema]
        if "string" in kinds:
            return bytes([2 * kinds.index("string")]) + _written("string", text)
    if kind != "string":
        raise Unreadable(f"a source block with a name of type {kind}")
    data = text.encode()
    length, head = 2 * len(data), []
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    return bytes([*head, length]) + data
