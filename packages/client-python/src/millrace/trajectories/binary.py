"""The binary form of a trajectory: a JSON head with everything except the numbers, then all ids as int32, all logprobs as float32,
all sampling masks as int32 (the lengths, then the ids), and all routed experts as uint8 or uint16, little-endian, then the SHA-256 of
all bytes before it. It round-trips bit for bit, and TypeScript writes the same bytes."""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from array import array
from typing import Any, Optional

from ..error import corrupt_error
from ..wire.codec import WireError, from_wire, to_wire
from .routed_experts import experts_from_head, experts_to_head, write_experts
from .sampling_mask import SamplingMask
from .trajectory import Segment, SegmentHead, Trajectory, TrajectoryHead, check_segment, head_to_json, little_bytes

MEDIA_TYPE = "application/vnd.millrace.trajectory"
_MAGIC = b"MRT2"
#: Of older services: without a checksum.
_UNCHECKED_MAGIC = b"MRT1"
_CHECKSUM_BYTES = 32


def trajectory_from_binary(data: bytes) -> Trajectory:
    """Raises `trajectory-corrupt` if the bytes do not have their checksum, and a WireError if they are not a whole trajectory."""
    data = _without_checksum(data)
    length = struct.unpack_from("<I", data, 4)[0]
    head, entries = _read_head(data[8 : 8 + length])
    numbers = memoryview(data)[_padded(8 + length) :]
    id_counts = [_count(entry, "ids", index) for index, entry in enumerate(entries)]
    logprob_counts = [_count(entry, "logprobs", index) for index, entry in enumerate(entries)]
    expert_sizes = [_expert_bytes(entry, index) for index, entry in enumerate(entries)]
    mask_sizes = [_mask_counts(entry, index) for index, entry in enumerate(entries)]
    masks_at = 4 * (sum(id_counts) + sum(logprob_counts))
    wanted = masks_at + 4 * sum(lengths + ids for lengths, ids in mask_sizes) + sum(expert_sizes)
    if len(numbers) != wanted:
        raise WireError(f"truncated trajectory: {len(numbers)} bytes of numbers, expected {wanted}")
    segments = []
    id_at, logprob_at, expert_at = 0, 4 * sum(id_counts), wanted - sum(expert_sizes)
    for index, entry in enumerate(entries):
        id_end, logprob_end = id_at + 4 * id_counts[index], logprob_at + 4 * logprob_counts[index]
        where = f"Trajectory.segments[{index}]"
        numbers_of = (_read_array("i", numbers[id_at:id_end]), _read_array("f", numbers[logprob_at:logprob_end]))
        experts = entry.get("experts")
        expert_end = expert_at + expert_sizes[index]
        routed = None if experts is None else experts_from_head(experts, bytes(numbers[expert_at:expert_end]))
        mask_end = masks_at + 4 * sum(mask_sizes[index])
        mask = _read_mask(entry, numbers[masks_at:mask_end], mask_sizes[index])
        segment = Segment(from_wire(SegmentHead, entry, where), *numbers_of, routed, mask)
        check_segment(segment, where)
        segments.append(segment)
        id_at, logprob_at, masks_at, expert_at = id_end, logprob_end, mask_end, expert_end
    return Trajectory(
        head.rollout_id, head.attempt, head.model, head.tools, tuple(segments), head.provenances, head.text_dropped
    )


def _without_checksum(data: bytes) -> bytes:
    if len(data) < 8 or data[:4] not in (_MAGIC, _UNCHECKED_MAGIC):
        raise WireError("not a trajectory: it does not begin with MRT2")
    if data[:4] == _UNCHECKED_MAGIC:
        return data
    body, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    if hashlib.sha256(body).digest() != checksum:
        raise corrupt_error("the trajectory was changed: its content does not have its checksum")
    return body


def trajectory_to_binary(trajectory: Trajectory) -> bytes:
    entries = [_write_entry(one) for one in trajectory.segments]
    text = json.dumps({**head_to_json(trajectory), "segments": entries}, ensure_ascii=False, separators=(",", ":"))
    head = text.encode()
    parts = [_MAGIC, struct.pack("<I", len(head)), head, bytes(_padded(8 + len(head)) - 8 - len(head))]
    parts += [little_bytes("i", one.token_ids) for one in trajectory.segments]
    parts += [little_bytes("f", one.logprobs) for one in trajectory.segments]
    masks = [one.sampling_mask for one in trajectory.segments if one.sampling_mask is not None]
    parts += [little_bytes("i", numbers) for one in masks for numbers in (one.lengths, one.token_ids)]
    parts += [write_experts(one.routed_experts) for one in trajectory.segments if one.routed_experts is not None]
    data = b"".join(parts)
    return data + hashlib.sha256(data).digest()


def _write_entry(segment: Segment) -> dict[str, Any]:
    experts = {} if segment.routed_experts is None else {"experts": experts_to_head(segment.routed_experts)}
    mask = {} if segment.sampling_mask is None else {"mask_ids": len(segment.sampling_mask.token_ids)}
    return {**to_wire(segment.head), "ids": len(segment.token_ids), "logprobs": len(segment.logprobs), **mask, **experts}


def _read_head(data: bytes) -> tuple[TrajectoryHead, list[Any]]:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise WireError(f"not a trajectory: its head is not JSON: {error}") from error
    head = from_wire(TrajectoryHead, value, "Trajectory")
    entries = value.get("segments")
    if not isinstance(entries, list):
        raise WireError("Trajectory.segments is missing")
    return head, entries


def _count(entry: Any, name: str, index: int) -> int:
    value = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(value, int) or value < 0:
        raise WireError(f"Trajectory.segments[{index}].{name}: expected a count, not {value!r}")
    return value


def _mask_counts(entry: Any, index: int) -> tuple[int, int]:
    return (_count(entry, "ids", index), _count(entry, "mask_ids", index)) if "mask_ids" in entry else (0, 0)


def _read_mask(entry: Any, numbers: memoryview, counts: tuple[int, int]) -> Optional[SamplingMask]:
    if "mask_ids" not in entry:
        return None
    return SamplingMask(_read_array("i", numbers[: 4 * counts[0]]), _read_array("i", numbers[4 * counts[0] :]))


def _expert_bytes(entry: Any, index: int) -> int:
    experts = entry.get("experts")
    if experts is None:
        return 0
    try:
        return int(experts["width"]) * int(experts["count"])
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"Trajectory.segments[{index}].experts: expected from, shape, width and count") from error


def _padded(length: int) -> int:
    return (length + 3) // 4 * 4


def _read_array(code: str, data: memoryview) -> array[Any]:
    numbers: array[Any] = array(code)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
