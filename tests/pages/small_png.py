"""Makes PNG files of screenshots small: at most 256 colours, as a palette."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOURS = 256
_ALIKE = 20
_RGB, _RGBA, _PALETTE = 2, 6, 3
_UP, _LEFT, _AVERAGE, _PAETH = 2, 1, 3, 4
Colour = tuple[int, int, int]


def smaller(png: bytes) -> bytes:
    """A screenshot with at most 256 colours: rare ones become the nearest of the others.

    Raises:
        ValueError: It is not a PNG as browsers write it: 8 bits, RGB or RGBA, not interlaced.
    """
    width, height, pixels = read(png)
    counts = Counter(pixels)
    # Of colours that are nearly alike one is enough, so that rare ones which are not are kept.
    kinds: dict[Colour, Colour] = {}
    for (red, green, blue), _ in counts.most_common():
        kinds.setdefault((red // _ALIKE, green // _ALIKE, blue // _ALIKE), (red, green, blue))
    palette = list(kinds.values())[:_COLOURS]
    places = {colour: place for place, colour in enumerate(palette)}
    for colour in counts:
        if colour not in places:
            places[colour] = min(range(len(palette)), key=lambda p: _apart(palette[p], colour))
    rows = bytearray()
    for begin in range(0, width * height, width):
        rows.append(0)
        rows += bytes(places[pixel] for pixel in pixels[begin : begin + width])
    header = struct.pack(">IIBBBBB", width, height, 8, _PALETTE, 0, 0, 0)
    colours = b"".join(map(bytes, palette))
    return _SIGNATURE + b"".join(
        _chunk(kind, data)
        for kind, data in (
            (b"IHDR", header),
            (b"PLTE", colours),
            (b"IDAT", zlib.compress(bytes(rows), 9)),
            (b"IEND", b""),
        )
    )


def read(png: bytes) -> tuple[int, int, list[Colour]]:
    """Width, height, and the colours row by row."""
    chunks = list(_chunks(png))
    width, height, bits, kind, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    if bits != 8 or kind not in (_RGB, _RGBA, _PALETTE) or interlaced:
        raise ValueError("not a PNG as browsers write it")
    size = {_RGB: 3, _RGBA: 4, _PALETTE: 1}[kind]
    raw = zlib.decompress(b"".join(data for name, data in chunks if name == b"IDAT"))
    pixels: list[Colour] = []
    before = bytearray(width * size)
    for begin in range(0, len(raw), width * size + 1):
        row = _unfiltered(
            raw[begin], bytearray(raw[begin + 1 : begin + 1 + width * size]), before, size
        )
        before = row
        if kind == _PALETTE:
            table = next(data for name, data in chunks if name == b"PLTE")
            pixels += [(table[3 * p], table[3 * p + 1], table[3 * p + 2]) for p in row]
        else:
            pixels += zip(row[0::size], row[1::size], row[2::size], strict=True)
    return width, height, pixels


def _unfiltered(kind: int, row: bytearray, above: bytearray, size: int) -> bytearray:
    if kind == _UP:
        return bytearray((a + b) & 255 for a, b in zip(row, above, strict=True))
    for at in range(len(row) if kind else 0):
        left = row[at - size] if at >= size else 0
        if kind == _LEFT:
            add = left
        elif kind == _AVERAGE:
            add = (left + above[at]) // 2
        else:
            add = _paeth(left, above[at], above[at - size] if at >= size else 0)
        row[at] = (row[at] + add) & 255
    return row


def _paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    return min((left, above, corner), key=lambda value: abs(guess - value))


def _apart(one: Colour, other: Colour) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not png.startswith(_SIGNATURE):
        raise ValueError("not a PNG")
    at = len(_SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
