"""The little of the Parquet format that rows need: columns of numbers, texts and lists of numbers, plain and uncompressed, so that
any reader can read them and no library is needed to write them."""

from __future__ import annotations

import struct
import sys
from array import array
from dataclasses import dataclass
from itertools import chain
from typing import Any, Sequence

MAGIC = b"PAR1"

# Physical types of the format, by our names.
_PHYSICAL = {"int32": 1, "int64": 2, "float": 4, "double": 5, "text": 6}
_ARRAY_CODES = {"int32": "i", "int64": "q", "float": "f", "double": "d"}
_REQUIRED, _OPTIONAL, _REPEATED = 0, 1, 2
_UTF8, _LIST = 0, 3
_PLAIN, _RLE = 0, 3


@dataclass(frozen=True)
class Column:
    """`form` is required, optional (None is absent) or list."""

    name: str
    kind: str
    form: str = "required"

    @property
    def path(self) -> list[str]:
        return [self.name, "list", "element"] if self.form == "list" else [self.name]


def schema_elements(columns: Sequence[Column]) -> list[bytes]:
    elements = [_struct((4, "text", "schema"), (5, "i32", len(columns)))]
    for column in columns:
        utf8 = [(6, "i32", _UTF8)] if column.kind == "text" else []
        if column.form == "list":
            elements.append(_struct((3, "i32", _REQUIRED), (4, "text", column.name), (5, "i32", 1), (6, "i32", _LIST)))
            elements.append(_struct((3, "i32", _REPEATED), (4, "text", "list"), (5, "i32", 1)))
        name = column.path[-1]
        repetition = _OPTIONAL if column.form == "optional" else _REQUIRED
        elements.append(_struct((1, "i32", _PHYSICAL[column.kind]), (3, "i32", repetition), (4, "text", name), *utf8))
    return elements


def column_chunk(column: Column, values: Sequence[Any], offset: int) -> tuple[bytes, bytes]:
    """The bytes of a column's one page, and the metadata that says where in the file it begins."""
    count, data = _page_data(column, values)
    page = _struct((1, "i32", count), (2, "i32", _PLAIN), (3, "i32", _RLE), (4, "i32", _RLE))
    body = _struct((1, "i32", 0), (2, "i32", len(data)), (3, "i32", len(data)), (5, "struct", page)) + data
    meta = _struct(
        (1, "i32", _PHYSICAL[column.kind]),
        (2, "i32s", [_PLAIN, _RLE]),
        (3, "texts", column.path),
        (4, "i32", 0),
        (5, "i64", count),
        (6, "i64", len(body)),
        (7, "i64", len(body)),
        (9, "i64", offset),
    )
    return body, _struct((2, "i64", offset), (3, "struct", meta))


def row_group(chunks: Sequence[bytes], size: int, rows: int) -> bytes:
    return _struct((1, "structs", chunks), (2, "i64", size), (3, "i64", rows))


def file_metadata(schema: Sequence[bytes], rows: int, groups: Sequence[bytes]) -> bytes:
    return _struct((1, "i32", 1), (2, "structs", schema), (3, "i64", rows), (4, "structs", groups), (6, "text", "millrace"))


def _page_data(column: Column, values: Sequence[Any]) -> tuple[int, bytes]:
    if column.form == "required":
        return len(values), _plain(column.kind, values)
    if column.form == "optional":
        levels = _levels((1, 0 if one is None else 1) for one in values)
        return len(values), levels + _plain(column.kind, [one for one in values if one is not None])
    # A list's first element begins a row, the others repeat it; an empty list is one place without an element.
    repetition = _levels(run for one in values for run in ((1, 0), (max(0, len(one) - 1), 1)))
    definition = _levels((max(1, len(one)), 1 if len(one) else 0) for one in values)
    count = sum(max(1, len(one)) for one in values)
    return count, repetition + definition + _plain(column.kind, list(chain.from_iterable(values)))


def _plain(kind: str, values: Sequence[Any]) -> bytes:
    if kind == "text":
        texts = [one.encode() for one in values]
        return b"".join(struct.pack("<I", len(one)) + one for one in texts)
    numbers = array(_ARRAY_CODES[kind], values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _levels(runs: Any) -> bytes:
    """Runs of (count, level), each level one bit wide, with the length in front; runs of the same level are joined."""
    joined: list[list[int]] = []
    for count, level in runs:
        if count and joined and joined[-1][1] == level:
            joined[-1][0] += count
        elif count:
            joined.append([count, level])
    data = b"".join(_varint(count << 1) + bytes([level]) for count, level in joined)
    return struct.pack("<I", len(data)) + data


def _struct(*fields: tuple[int, str, Any]) -> bytes:
    """A struct of Thrift's compact protocol: fields of (number, kind, value), in rising order of their numbers."""
    parts = []
    last = 0
    for number, kind, value in fields:
        code, data = _value(kind, value)
        parts.append(bytes([(number - last) << 4 | code]) + data)
        last = number
    return b"".join(parts) + b"\0"


def _value(kind: str, value: Any) -> tuple[int, bytes]:
    if kind in ("i32", "i64"):
        return (5 if kind == "i32" else 6), _varint(value << 1)  # Zigzag, of numbers that are never negative.
    if kind == "text":
        data = value.encode()
        return 8, _varint(len(data)) + data
    if kind == "struct":
        return 12, value
    if kind == "structs":
        return 9, _list_head(len(value), 12) + b"".join(value)
    code, parts = (5, [_value("i32", one)[1] for one in value]) if kind == "i32s" else (8, [_value("text", one)[1] for one in value])
    return 9, _list_head(len(value), code) + b"".join(parts)


def _list_head(count: int, code: int) -> bytes:
    return bytes([count << 4 | code]) if count < 15 else bytes([0xF0 | code]) + _varint(count)


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)
