"""The binary form of a page of groups: "MRG1", the length of a JSON head, the head `{ page, trajectories }` with the byte length of
each trajectory, then the trajectories in their binary form. Head and trajectories are padded to multiples of four bytes."""

from __future__ import annotations

import dataclasses
import json
import struct
from dataclasses import dataclass
from typing import Any

from ..trajectories.binary import trajectory_from_binary
from ..wire.codec import WireError, from_wire
from .batch import GroupPage, group_page_from_json

MEDIA_TYPE = "application/vnd.millrace.groups"
_MAGIC = b"MRG1"


@dataclass(frozen=True)
class _Head:
    page: Any
    trajectories: tuple[tuple[int, ...], ...]


def group_page_from_binary(data: bytes) -> GroupPage:
    """Raises a WireError with what was found if the bytes are not a whole page."""
    if len(data) < 8 or data[:4] != _MAGIC:
        raise WireError("not a page of groups: it does not begin with MRG1")
    length = struct.unpack_from("<I", data, 4)[0]
    try:
        head = from_wire(_Head, json.loads(data[8 : 8 + length]), "GroupPage")
    except WireError:
        raise
    except ValueError as error:
        raise WireError(f"not a page of groups: its head is not JSON: {error}") from error
    page = group_page_from_json(head.page)
    if len(head.trajectories) != len(page.groups):
        raise WireError(f"GroupPage: trajectories of {len(head.trajectories)} groups for {len(page.groups)}")
    at = 8 + _padded(length)
    groups = []
    for group, lengths in zip(page.groups, head.trajectories):
        if len(lengths) != len(group.rollouts):
            raise WireError(f"GroupPage: group {group.id} has {len(lengths)} trajectories for {len(group.rollouts)} rollouts")
        read = []
        for size in lengths:
            read.append(trajectory_from_binary(data[at : at + size]))
            at += _padded(size)
        groups.append(dataclasses.replace(group, trajectories=tuple(read)))
    if at != len(data):
        raise WireError(f"truncated page of groups: {len(data)} bytes, expected {at}")
    return GroupPage(tuple(groups), page.next, page.state)


def _padded(length: int) -> int:
    return (length + 3) // 4 * 4
