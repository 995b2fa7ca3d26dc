"""Compares the typed inputs of this client with the protocol's request schemas and enumerations. Reads them as JSON, and prints every
field that only one side has, every field that only one side requires, and every list of values that differs."""

from __future__ import annotations

import inspect
import json
import sys
import typing
from typing import Any, Iterator, Literal

import millrace
from millrace.service.backends import Backends
from millrace.service.policy import Policy
from millrace.service.trainer import Trainer

#: Parameters of calls that are not fields of the request; `base_model` sends `adapter` as null.
NOT_FIELDS = {"self", "stop", "settle", "base_model"}


def compare(kind: Any, schema: Any, where: str) -> Iterator[str]:
    """Compares a TypedDict, a union of them, or a Literal with its JSON schema; other types are not compared."""
    if typing.get_origin(kind) is Literal:
        wanted = schema.get("enum", [schema.get("const")])
        if sorted(typing.get_args(kind)) != sorted(wanted):
            yield f"{where}: {typing.get_args(kind)} in Python, {wanted} in the protocol"
    elif typing.get_origin(kind) is typing.Union and str in typing.get_args(kind):
        [short] = [one for one in typing.get_args(kind) if one is not str]
        [found] = [one for one in schema["anyOf"] if "properties" in one]
        yield from compare(short, found, where)
    elif typing.get_origin(kind) is typing.Union and any(typing.get_origin(one) is Literal for one in typing.get_args(kind)):
        [short] = [one for one in typing.get_args(kind) if typing.get_origin(one) is Literal]
        [found] = [one for one in schema["anyOf"] if "enum" in one]
        yield from compare(short, found, where)
    elif typing.get_origin(kind) is typing.Union:
        for one in typing.get_args(kind):
            rule = typing.get_type_hints(one)["rule"]
            [found] = [s for s in schema["oneOf"] if s["properties"]["rule"]["const"] in typing.get_args(rule)]
            yield from compare(one, found, f"{where}.{typing.get_args(rule)[0]}")
        if len(schema["oneOf"]) != len(typing.get_args(kind)):
            yield f"{where}: {len(typing.get_args(kind))} kinds in Python, {len(schema['oneOf'])} in the protocol"
    elif hasattr(kind, "__required_keys__"):
        hints = typing.get_type_hints(kind)
        yield from compare_names(set(hints), set(schema["properties"]), f"{where} has fields")
        yield from compare_names(set(kind.__required_keys__), set(schema.get("required", ())), f"{where} requires")
        for name in set(hints) & set(schema["properties"]):
            yield from compare(hints[name], schema["properties"][name], f"{where}.{name}")


def compare_call(method: Any, schema: Any, where: str) -> Iterator[str]:
    hints = typing.get_type_hints(method)
    parameters = {name: one for name, one in inspect.signature(method).parameters.items() if name not in NOT_FIELDS}
    required = {name for name, one in parameters.items() if one.default is inspect.Parameter.empty}
    yield from compare_names(set(parameters), set(schema["properties"]), f"{where} has parameters")
    yield from compare_names(required, set(schema.get("required", ())), f"{where} requires")
    for name in set(parameters) & set(schema["properties"]):
        inner = [one for one in typing.get_args(hints[name]) if typing.get_origin(one) is Literal]
        kind = hints[name] if typing.get_origin(hints[name]) is Literal else inner[0] if inner else None
        yield from compare(kind, schema["properties"][name], f"{where}.{name}")


def compare_names(python: set[str], protocol: set[str], where: str) -> Iterator[str]:
    for name in sorted(python ^ protocol):
        yield f"{where}: {name} only in {'Python' if name in python else 'the protocol'}"


def main() -> None:
    given = json.load(sys.stdin)
    differences = [
        *compare(millrace.RolloutRequest, given["rollout"], "RolloutRequest"),
        *compare(millrace.BatchRequest, given["batch"], "BatchRequest"),
        *compare(millrace.EvaluationRequest, given["evaluation"], "EvaluationRequest"),
        *compare_call(Backends.join, given["join"], "backends.join"),
        *compare_call(Policy.pause, given["pause"], "policy.pause"),
        *compare_call(Policy.resume, given["resume"], "policy.resume"),
        *compare_call(Trainer.post, given["trainer"], "trainer.post"),
        *compare(millrace.TrainerSample, given["trainer"]["properties"]["samples"]["items"], "TrainerSample"),
    ]
    for name, values in given["values"].items():
        differences += compare(getattr(millrace, name), {"enum": values}, name)
    print(json.dumps(differences))


if __name__ == "__main__":
    main()
