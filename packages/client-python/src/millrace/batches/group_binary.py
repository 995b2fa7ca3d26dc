"""The binary form of a page of groups: "MRG2", the length of a JSON head, the head `{ page, trajectories }` with the number of
trajectories of each group, then for each trajectory its length and its bytes. Head and trajectories are padded to multiples of
four bytes."""

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
_MAGIC = b"MRG2"


@dataclass(frozen=True)
class _Head:
    page: Any
    trajectories: tuple[int, ...]


def group_page_from_binary(data: bytes) -> GroupPage:
    """Raises a WireError with what was found if the bytes are not a whole page."""
    if data[:4] != _MAGIC:
        raise WireError("not a page of groups: it does not begin with MRG2")
    start, at = _read_part(data, 4)
    try:
        head = from_wire(_Head, json.loads(start), "GroupPage")
    except WireError:
        raise
    except ValueError as error:
        raise WireError(f"not a page of groups: its head is not JSON: {error}") from error
    page = group_page_from_json(head.page)
    if len(head.trajectories) != len(page.groups):
        raise WireError(f"GroupPage: trajectories of {len(head.trajectories)} groups for {len(page.groups)}")
    groups = []
    for group, count in zip(page.groups, head.trajectories):
        if count != len(group.rollouts):
            raise WireError(f"GroupPage: group {group.id} has {count} trajectories for {len(group.rollouts)} rollouts")
        read = []
        for _ in range(count):
            body, at = _read_part(data, at)
            read.append(trajectory_from_binary(body))
        groups.append(dataclasses.replace(group, trajectories=tuple(read)))
    if at != len(data):
        raise WireError(f"page of groups has {len(data)} bytes, but ends after {at}")
    return GroupPage(tuple(groups), page.next, page.state)


def _read_part(data: bytes, at: int) -> tuple[bytes, int]:
    """The bytes of the part at this place, and where the next one is."""
    length = struct.unpack_from("<I", data, at)[0] if at + 4 <= len(data) else 0
    end = at + 4 + (length + 3) // 4 * 4
    if end > len(data):
        raise WireError(f"truncated page of groups: {len(data)} bytes, and {end} are announced so far")
    return data[at + 4 : at + 4 + length], end
