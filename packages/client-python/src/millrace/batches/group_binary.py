"""The binary form of a page of groups: "MRG3", the length of a JSON head, the head `{ page, trajectories }` with the number of
trajectories of each group, the SHA-256 of all bytes before it, then for each trajectory its length and its bytes. Head and trajectories
are padded to multiples of four bytes. A trajectory that the service could not read is an error as JSON."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from typing import Any

from ..error import corrupt_error
from ..trajectories.binary import trajectory_from_binary
from ..wire.codec import WireError, from_wire
from .batch import GroupPage, group_page_from_json, lost_from_json, with_trajectories

MEDIA_TYPE = "application/vnd.millrace.groups"
_MAGIC = b"MRG3"
_CHECKSUM_BYTES = 32


@dataclass(frozen=True)
class _Head:
    page: Any
    trajectories: tuple[int, ...]


def group_page_from_binary(data: bytes) -> GroupPage:
    """Raises `trajectory-corrupt` if bytes were changed or are of other rollouts, and a WireError if they are not a whole page."""
    if data[:4] != _MAGIC:
        raise WireError("not a page of groups: it does not begin with MRG3")
    start, at = _read_part(data, 4)
    if hashlib.sha256(data[:at]).digest() != data[at : at + _CHECKSUM_BYTES]:
        raise corrupt_error("the page of groups was changed: its head does not have its checksum")
    at += _CHECKSUM_BYTES
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
            read.append(lost_from_json(json.loads(body)) if body[:1] == b"{" else trajectory_from_binary(body))
        groups.append(with_trajectories(group, read))
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
