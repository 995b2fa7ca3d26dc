"""JSON Schema from Python types, and values of these types from JSON: dataclasses, TypedDicts, lists, dictionaries, Literal, Optional,
Annotated and the plain types. What cannot be expressed is refused by name."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, Literal, Optional, Union

PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    dict: {"type": "object"},
    list: {"type": "array"},
}


def to_schema(kind: Any, where: str) -> dict[str, Any]:
    """Raises TypeError that names the field."""
    if kind in PLAIN if _is_hashable(kind) else False:
        return dict(PLAIN[kind])
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if _is_annotated(kind):
        notes = [note for note in kind.__metadata__ if isinstance(note, str)]
        return {**to_schema(kind.__origin__, where), **({"description": notes[0]} if notes else {})}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is Union or type(kind).__name__ == "UnionType":
        return {"anyOf": [to_schema(one, where) for one in arguments]}
    if origin in (list, tuple, set) or str(origin) in ("<class 'collections.abc.Sequence'>",):
        items = [one for one in arguments if one is not Ellipsis]
        return {"type": "array", **({"items": to_schema(items[0], f"{where}[]")} if len(items) == 1 else {})}
    if origin is dict or str(origin) in ("<class 'collections.abc.Mapping'>",):
        return {"type": "object", "additionalProperties": to_schema(arguments[1], f"{where}{{}}")}
    if dataclasses.is_dataclass(kind):
        return _object(kind, {one.name: one for one in dataclasses.fields(kind)}, where)
    if isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__required_keys__"):
        required = kind.__required_keys__
        return to_object_schema({name: (one, name in required) for name, one in hints_of(kind, where).items()}, where)
    raise TypeError(f"{where} has the type {kind!r}, which JSON Schema cannot express here; use plain types, lists, dataclasses or Any")


def _object(kind: Any, fields: dict[str, Any], where: str) -> dict[str, Any]:
    hints = hints_of(kind, where)
    schema = to_object_schema({name: (hints[name], _is_required(one)) for name, one in fields.items()}, where)
    for name, one in fields.items():
        about = one.metadata.get("description")
        if about is not None:
            schema["properties"][name]["description"] = about
    return schema


def to_object_schema(fields: dict[str, tuple[Any, bool]], where: str) -> dict[str, Any]:
    """An object with exactly these fields, each with its type and whether it is required."""
    return {
        "type": "object",
        "properties": {name: to_schema(kind, f"{where}.{name}") for name, (kind, _) in fields.items()},
        "required": [name for name, (_, required) in fields.items() if required],
        "additionalProperties": False,
    }


def hints_of(kind: Any, where: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except Exception as error:
        raise TypeError(f"the types of {where} cannot be read: {error}; `X | None` needs Python 3.10, so write Optional[X]") from error


def from_json(kind: Any, value: Any) -> Any:
    """The value as this type; one that matched the schema always fits."""
    if _is_annotated(kind):
        return from_json(kind.__origin__, value)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type) and isinstance(value, dict):
        hints = hints_of(kind, kind.__name__)
        return kind(**{name: from_json(hints[name], one) for name, one in value.items()})
    if (origin is Union or type(kind).__name__ == "UnionType") and value is not None:
        inner: Optional[Any] = next((one for one in arguments if dataclasses.is_dataclass(one)), None)
        return from_json(inner, value) if inner is not None and isinstance(value, dict) else value
    if origin in (list, tuple, set) and isinstance(value, list):
        return origin(from_json(arguments[0], one) for one in value) if arguments else origin(value)
    if origin is dict and isinstance(value, dict):
        return {name: from_json(arguments[1], one) for name, one in value.items()}
    return float(value) if kind is float and isinstance(value, int) else value


def _is_required(one: Any) -> bool:
    return one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING


def _is_annotated(kind: Any) -> bool:
    return hasattr(kind, "__metadata__") and hasattr(kind, "__origin__")


def _is_hashable(kind: Any) -> bool:
    return getattr(kind, "__hash__", None) is not None
