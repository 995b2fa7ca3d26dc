"""Which experts the tokens of a mixture-of-experts model were routed to: one row for each token, one or two bytes for each id."""

from __future__ import annotations

import base64
import sys
from array import array
from dataclasses import dataclass
from typing import Any, Mapping

from ..wire.codec import WireError

_CODES = {"uint8": "B", "uint16": "H"}


@dataclass(frozen=True)
class RoutedExperts:
    #: The index in the branch of the token that the first row belongs to.
    first: int
    #: The shape of one row: layers and experts, or their product if the server does not say.
    shape: tuple[int, ...]
    #: `array('B')` or `array('H')`, row after row.
    ids: array[int]


def experts_from_json(value: Any, where: str) -> RoutedExperts:
    try:
        data = base64.b64decode(value["data"], validate=True)
        return RoutedExperts(int(value["from"]), tuple(value["shape"]), read_experts(_CODES[value["dtype"]], data))
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"{where}: expected from, shape, dtype and data: {error!r}") from error


def experts_to_json(experts: RoutedExperts) -> dict[str, Any]:
    dtype = "uint8" if experts.ids.typecode == "B" else "uint16"
    data = base64.b64encode(write_experts(experts)).decode()
    return {"from": experts.first, "shape": list(experts.shape), "dtype": dtype, "data": data}


def experts_from_head(head: Mapping[str, Any], data: bytes) -> RoutedExperts:
    return RoutedExperts(head["from"], tuple(head["shape"]), read_experts("B" if head["width"] == 1 else "H", data))


def experts_to_head(experts: RoutedExperts) -> dict[str, Any]:
    width = 1 if experts.ids.typecode == "B" else 2
    return {"from": experts.first, "shape": list(experts.shape), "width": width, "count": len(experts.ids)}


def read_experts(code: str, data: bytes) -> array[int]:
    ids = array(code)
    ids.frombytes(data)
    return _little(ids)


def write_experts(experts: RoutedExperts) -> bytes:
    return _little(array(experts.ids.typecode, experts.ids)).tobytes()


def _little(ids: array[int]) -> array[int]:
    if sys.byteorder == "big":
        ids.byteswap()
    return ids
