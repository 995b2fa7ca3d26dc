"""A trajectory: an ordered list of segments whose token ids, concatenated, are exactly what the model saw and sampled.
Ids and logprobs are `array('i')` and `array('f')`, or numpy arrays of the same width on request."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import sys
from array import array
from dataclasses import dataclass
from typing import Any, Literal, Mapping, Optional, Sequence

from ..error import corrupt_error
from ..rollouts.rollout import PolicySpan
from ..wire.codec import WireError, from_wire, to_wire
from .routed_experts import RoutedExperts, experts_from_json, experts_to_json, write_experts
from .sampling_mask import SamplingMask, mask_from_json

#: Only `sampled` segments are trainable.
SegmentKind = Literal["prompt", "sampled", "observation", "inserted"]


@dataclass(frozen=True)
class ToolCall:
    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Message:
    role: str
    content: str
    #: What the policy wrote in think tags before its content.
    reasoning: Optional[str] = None
    tool_calls: Optional[tuple[ToolCall, ...]] = None
    tool_call_id: Optional[str] = None
    name: Optional[str] = None


@dataclass(frozen=True)
class ToolSpec:
    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Provenance:
    """How tokens were sampled. `sampling` has the parameters that were sent with every call."""

    engine: Optional[str]
    engine_version: Optional[str]
    dialect: str
    #: `processed` logprobs are those of the sampling distribution; `raw` ones are from before temperature and penalties.
    logprobs_mode: str
    sampling: Mapping[str, Any]
    #: Of the service's tokenizer.json; None if it uses a backend's tokenizer.
    tokenizer_sha256: Optional[str]
    #: Of the chat template, followed by its variables as JSON if there are any.
    template_sha256: str
    #: The model, as its server names it.
    engine_model: Optional[str] = None
    #: Which of the servers that have answered at the backend's address: a restart is another server.
    generation: Optional[int] = None
    #: The sampling parameters that changed the distribution and that the logprobs do not show; None if that is unknown.
    logprobs_without: Optional[tuple[str, ...]] = None
    #: The date and time that the chat template wrote, in UTC.
    date: Optional[str] = None


@dataclass(frozen=True)
class SegmentHead:
    """Everything about a segment except its numbers."""

    kind: SegmentKind
    turn: int
    text: str
    messages: tuple[Message, ...]
    finish_reason: Optional[str] = None
    #: What ended the turn: a stop string, or the id of a stop token.
    stopped_by: Any = None
    backend: Optional[str] = None
    policy_versions: Optional[PolicySpan] = None
    #: The LoRA adapter that sampled it; None for the base model.
    adapter: Optional[str] = None
    #: Of a sampled segment: the index of its entry in `Trajectory.provenances`.
    provenance: Optional[int] = None
    retries: Optional[int] = None
    #: A rewritten history starts a new branch, which has its own prompt segment.
    branch: int = 0


@dataclass(frozen=True)
class Segment:
    head: SegmentHead
    token_ids: Sequence[int]
    #: One for each id of a sampled segment; empty for other kinds.
    logprobs: Sequence[float]
    #: Of a sampled segment, if `sampling.routed_experts` was set.
    routed_experts: Optional[RoutedExperts] = None
    #: Of a sampled segment, if `sampling.sampling_mask` was set.
    sampling_mask: Optional[SamplingMask] = None

    @property
    def kind(self) -> SegmentKind:
        return self.head.kind

    @property
    def sampled(self) -> bool:
        return self.head.kind == "sampled"


@dataclass(frozen=True)
class TrajectoryHead:
    rollout_id: str
    attempt: int
    model: str
    tools: tuple[ToolSpec, ...]
    provenances: tuple[Provenance, ...] = ()
    text_dropped: Optional[bool] = None


@dataclass(frozen=True)
class Trajectory:
    rollout_id: str
    attempt: int
    model: str
    tools: tuple[ToolSpec, ...]
    segments: tuple[Segment, ...]
    #: The distinct ways in which its segments were sampled.
    provenances: tuple[Provenance, ...] = ()
    #: True once retention has dropped its texts and messages; the tokens are all there.
    text_dropped: Optional[bool] = None

    @property
    def trainable_share(self) -> float:
        """The share of its tokens that are trainable: every sampled token is, once. 0.0 without tokens."""
        sampled = sum(len(one.token_ids) for one in self.segments if one.sampled)
        return sampled / max(1, sum(len(one.token_ids) for one in self.segments))

    def to_numpy(self) -> Trajectory:
        """The same numbers as int32 and float32 arrays, without copying where possible. Needs numpy: `pip install millrace[numpy]`."""
        numpy: Any = importlib.import_module("numpy")

        def convert(one: Segment) -> Segment:
            ids, logprobs = numpy.asarray(one.token_ids, "int32"), numpy.asarray(one.logprobs, "float32")
            return dataclasses.replace(one, token_ids=ids, logprobs=logprobs)

        return dataclasses.replace(self, segments=tuple(convert(one) for one in self.segments))


def trajectory_from_json(value: Any, where: str = "Trajectory") -> Trajectory:
    head = from_wire(TrajectoryHead, value, where)
    segments = value.get("segments")
    if not isinstance(segments, list):
        raise WireError(f"{where}.segments is missing")
    read = tuple(_read_segment(one, f"{where}.segments[{index}]") for index, one in enumerate(segments))
    trajectory = Trajectory(head.rollout_id, head.attempt, head.model, head.tools, read, head.provenances, head.text_dropped)
    # Services of older versions send no checksum.
    if value.get("sha256") not in (None, json_checksum(trajectory)):
        raise corrupt_error(f"the trajectory of rollout {head.rollout_id} was changed: its content does not have its checksum")
    return trajectory


def trajectory_to_json(trajectory: Trajectory) -> dict[str, Any]:
    segments = [_write_segment(one) for one in trajectory.segments]
    return {**head_to_json(trajectory), "segments": segments, "sha256": json_checksum(trajectory)}


def json_checksum(trajectory: Trajectory) -> str:
    """Of the id, the attempt, the texts and the numbers, as docs/tokens.md defines it."""
    checksum = hashlib.sha256(f"{trajectory.rollout_id} {trajectory.attempt}\n".encode())
    for one in trajectory.segments:
        mask, experts = one.sampling_mask, one.routed_experts
        parts = [
            _to_utf8(one.head.text),
            little_bytes("i", one.token_ids),
            little_bytes("f", [value + 0.0 for value in one.logprobs]),  # JSON has no negative zero.
            b"" if mask is None else little_bytes("i", mask.lengths),
            b"" if mask is None else little_bytes("i", mask.token_ids),
            b"" if experts is None else write_experts(experts),
        ]
        checksum.update(f"{one.kind} {' '.join(str(len(part)) for part in parts)}\n".encode())
        for part in parts:
            checksum.update(part)
    return checksum.hexdigest()


def _to_utf8(text: str) -> bytes:
    """With U+FFFD for half of a surrogate pair."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def little_bytes(code: str, numbers: Sequence[float]) -> bytes:
    written: array[Any] = array(code, numbers)
    if sys.byteorder == "big":
        written.byteswap()
    return written.tobytes()


def head_to_json(trajectory: Trajectory) -> dict[str, Any]:
    head = TrajectoryHead(
        trajectory.rollout_id,
        trajectory.attempt,
        trajectory.model,
        trajectory.tools,
        trajectory.provenances,
        trajectory.text_dropped,
    )
    wire: dict[str, Any] = to_wire(head)
    return wire


def _read_segment(value: Any, where: str) -> Segment:
    head = from_wire(SegmentHead, value, where)
    try:
        numbers = (array("i", value["token_ids"]), array("f", value["logprobs"]))
    except (KeyError, TypeError, OverflowError) as error:
        # JSON cannot express a logprob that is not finite; the binary form can.
        raise WireError(f"{where}: token_ids or logprobs are not numbers: {error!r}") from error
    experts = value.get("routed_experts")
    routed = None if experts is None else experts_from_json(experts, f"{where}.routed_experts")
    mask = value.get("sampling_mask")
    segment = Segment(head, *numbers, routed, None if mask is None else mask_from_json(mask, f"{where}.sampling_mask"))
    check_segment(segment, where)
    return segment


def check_segment(segment: Segment, where: str) -> None:
    wanted = len(segment.token_ids) if segment.sampled else 0
    if len(segment.logprobs) != wanted:
        raise WireError(f"{where}: {len(segment.token_ids)} ids of kind {segment.kind} with {len(segment.logprobs)} logprobs")
    mask = segment.sampling_mask
    if mask is not None and (len(mask.lengths) != len(segment.token_ids) or sum(mask.lengths) != len(mask.token_ids)):
        raise WireError(f"{where}: {len(segment.token_ids)} ids with {len(mask.lengths)} sampling masks")


def _write_segment(segment: Segment) -> dict[str, Any]:
    ids, logprobs = [int(one) for one in segment.token_ids], [float(one) for one in segment.logprobs]
    experts = {} if segment.routed_experts is None else {"routed_experts": experts_to_json(segment.routed_experts)}
    mask = {} if segment.sampling_mask is None else {"sampling_mask": segment.sampling_mask.rows()}
    trained = 1 if segment.sampled else 0
    return {**to_wire(segment.head), "token_ids": ids, "logprobs": logprobs, "mask": trained, **experts, **mask}
