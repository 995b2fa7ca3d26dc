"""Frozen dataclasses from JSON and back. Unknown fields are ignored, so that replies of a newer service can be read. A field that
is missing, or whose type differs from its annotation, is an error that names it.

A field without a default is always on the wire (None is null). A field with a default may be absent, and is omitted when written.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from typing import Any, Literal, Mapping, Type, TypeVar

from ..error import show

T = TypeVar("T")


class WireError(ValueError):
    """The data does not match the protocol. The message names the field and the value."""


def from_wire(cls: Type[T], value: Any, where: str = "") -> T:
    where = where or cls.__name__
    if not isinstance(value, Mapping):
        raise WireError(f"{where}: expected an object, not {show(value)}")
    fields = {}
    for name, (kind, required) in _fields_of(typing.cast(Any, cls)).items():
        if name in value:
            fields[name] = _read(kind, value[name], f"{where}.{name}")
        elif required:
            raise WireError(f"{where}.{name} is missing")
    return cls(**fields)


def to_wire(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {field.name: to_wire(held) for field, held in pairs if _is_required(field) or held != field.default}
    if isinstance(value, Mapping):
        return {key: to_wire(held) for key, held in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_wire(held) for held in value]
    return value


@functools.lru_cache(maxsize=None)
def _fields_of(cls: type) -> dict[str, tuple[Any, bool]]:
    hints = typing.get_type_hints(cls)
    return {field.name: (hints[field.name], _is_required(field)) for field in dataclasses.fields(cls)}


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _read(kind: Any, value: Any, where: str) -> Any:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin is Literal:
        return _read_plain(str, value, where)  # A newer service may have values that this client does not know.
    if origin is typing.Union:
        return None if value is None else _read(inner[0], value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise WireError(f"{where}: expected a list, not {show(value)}")
        return tuple(_read(inner[0], held, f"{where}[{index}]") for index, held in enumerate(value))
    if dataclasses.is_dataclass(kind):
        return from_wire(typing.cast(type, kind), value, where)
    if origin is not None:
        if not isinstance(value, dict):
            raise WireError(f"{where}: expected an object, not {show(value)}")
        return {key: _read(inner[1], held, f"{where}.{key}") for key, held in value.items()}
    return _read_plain(kind, value, where)


def _read_plain(kind: Any, value: Any, where: str) -> Any:
    # In Python a bool is an int, and JSON writes 1.0 as 1.
    if not isinstance(value, bool) or kind is bool:
        if isinstance(value, kind):
            return value
        if kind is float and isinstance(value, int):
            return float(value)
    raise WireError(f"{where}: expected {kind.__name__}, not {show(value)}")
