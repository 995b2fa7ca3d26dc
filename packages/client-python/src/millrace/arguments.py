"""Checks of the caller's arguments before anything is sent. A wrong type is a TypeError that says what was expected."""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping

from .error import caller_error, show

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\Z")


def check_id(id: Any, call: str, what: str) -> str:
    """`call` and `what` name the method and the kind of id in the message."""
    if not isinstance(id, str):
        inner = getattr(id, "id", None)
        hint = f"; pass its .id, {inner!r}" if isinstance(inner, str) else ""
        article = "an" if what[0] in "aeiou" else "a"
        raise TypeError(f"{call} expects {article} {what} id, a string, not {show(id)}{hint}")
    if not _ID.match(id):
        rule = "it must be 1 to 128 characters of A-Z a-z 0-9 . _ : -, and begin with a letter or a digit"
        raise caller_error(f"{id!r} is not an id: {rule}")
    return id


def check_ids(ids: Any, call: str, what: str) -> list[str]:
    if isinstance(ids, str):
        raise TypeError(f"{call} expects a list of {what} ids, not the string {ids!r}; for one rollout, call wait({ids!r})")
    if not isinstance(ids, Iterable) or isinstance(ids, Mapping):
        raise TypeError(f"{call} expects a list of {what} ids, not {show(ids)}")
    return [check_id(one, call, what) for one in ids]


def check_dict(value: Any, call: str, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{call} expects {what}, a dict, not {show(value)}")
    return value


def check_dicts(values: Any, call: str, what: str) -> list[Mapping[str, Any]]:
    expected = f"{call} expects {what}"
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, Mapping)):
        raise TypeError(f"{expected}, not {show(values)}")
    read = list(values)
    for index, value in enumerate(read):
        if not isinstance(value, Mapping):
            raise TypeError(f"{expected}, not {show(value)} at index {index}")
    return read
