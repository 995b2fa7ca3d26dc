"""The compact form of a trajectory: a JSON head with everything but the numbers, then all ids as int32, then all logprobs as
float32, little-endian. Writing and reading it is exact, bit for bit, and the same bytes as in TypeScript."""

from __future__ import annotations

import json
import struct
import sys
from array import array
from typing import Any, Sequence

from .trajectory import Segment, SegmentHead, Trajectory, TrajectoryHead, check_segment, head_to_json
from .wire import WireError, from_wire, to_wire

MEDIA_TYPE = "application/vnd.millrace.trajectory"
_MAGIC = b"MRT1"


def trajectory_from_binary(data: bytes) -> Trajectory:
    """Raises a WireError that says what was seen where the bytes are not a whole trajectory."""
    if len(data) < 8 or data[:4] != _MAGIC:
        raise WireError("not a trajectory: the first bytes are not MRT1")
    length = struct.unpack_from("<I", data, 4)[0]
    head, entries = _read_head(data[8 : 8 + length])
    numbers = memoryview(data)[_padded(8 + length) :]
    id_counts = [_count(entry, "ids", index) for index, entry in enumerate(entries)]
    logprob_counts = [_count(entry, "logprobs", index) for index, entry in enumerate(entries)]
    wanted = 4 * (sum(id_counts) + sum(logprob_counts))
    if len(numbers) != wanted:
        raise WireError(f"trajectory cut short: {len(numbers)} bytes of numbers, {wanted} announced")
    segments = []
    id_at, logprob_at = 0, 4 * sum(id_counts)
    for index, entry in enumerate(entries):
        id_end, logprob_end = id_at + 4 * id_counts[index], logprob_at + 4 * logprob_counts[index]
        where = f"Trajectory.segments[{index}]"
        numbers_of = (_read_array("i", numbers[id_at:id_end]), _read_array("f", numbers[logprob_at:logprob_end]))
        segment = Segment(from_wire(SegmentHead, entry, where), *numbers_of)
        check_segment(segment, where)
        segments.append(segment)
        id_at, logprob_at = id_end, logprob_end
    return Trajectory(head.rollout_id, head.attempt, head.model, head.tools, tuple(segments))


def trajectory_to_binary(trajectory: Trajectory) -> bytes:
    entries = [
        {**to_wire(one.head), "ids": len(one.token_ids), "logprobs": len(one.logprobs)} for one in trajectory.segments
    ]
    text = json.dumps({**head_to_json(trajectory), "segments": entries}, ensure_ascii=False, separators=(",", ":"))
    head = text.encode()
    parts = [_MAGIC, struct.pack("<I", len(head)), head, bytes(_padded(8 + len(head)) - 8 - len(head))]
    parts += [_write_array("i", one.token_ids) for one in trajectory.segments]
    parts += [_write_array("f", one.logprobs) for one in trajectory.segments]
    return b"".join(parts)


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
        raise WireError(f"Trajectory.segments[{index}].{name}: a count was expected, not {value!r}")
    return value


def _padded(length: int) -> int:
    return (length + 3) // 4 * 4


def _read_array(code: str, data: memoryview) -> array[Any]:
    numbers: array[Any] = array(code)
    numbers.frombytes(data)
    return _little(numbers)


def _write_array(code: str, numbers: Sequence[float]) -> bytes:
    return _little(array(code, numbers)).tobytes()


def _little(numbers: array[Any]) -> array[Any]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
