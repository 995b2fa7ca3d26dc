"""What trainers train on: one row for each branch of a trajectory, with a mask that is 1 exactly where the policy sampled. Every
other export is made of these rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Optional, Sequence

from ..rollouts.rollout import PolicySpan, RolloutView
from ..trajectories.trajectory import Message, Segment, ToolSpec, Trajectory, check_segment

Pair = tuple[RolloutView, Trajectory]


@dataclass(frozen=True)
class Row:
    """`prompt_ids` are the segments before the first sampled one, `response_ids` everything after; mask and logprobs are as long
    as the response, and a logprob is 0.0 where the mask is 0."""

    rollout: RolloutView
    trajectory: Trajectory
    branch: int
    #: Whether it is the last of its rollout.
    last: bool
    #: The rollout's; every branch has the same.
    reward: float
    prompt_ids: list[int]
    response_ids: list[int]
    response_mask: list[int]
    response_logprobs: list[float]
    #: Of this branch, in order.
    segments: tuple[Segment, ...]

    @property
    def policy_versions(self) -> Optional[PolicySpan]:
        spans = [one.head.policy_versions for one in self.segments if one.head.policy_versions is not None]
        return PolicySpan(min(one.first for one in spans), max(one.last for one in spans)) if spans else None

    @property
    def prompt_segments(self) -> Sequence[Segment]:
        return self.segments[: _first_sampled(self.segments)]

    @property
    def response_segments(self) -> Sequence[Segment]:
        return self.segments[_first_sampled(self.segments) :]

    @property
    def stop_reason(self) -> Optional[str]:
        return None if self.rollout.result is None else self.rollout.result.stop_reason


def to_rows(pairs: Iterable[Pair], *, skip_unscored: bool = False, skip_empty: bool = False) -> list[Row]:
    """In the order given. A rollout without a reward is refused, or left out by `skip_unscored`: no reward is not a reward of 0.
    A branch in which nothing was sampled is refused, or left out by `skip_empty`."""
    rows: list[Row] = []
    for rollout, trajectory in pairs:
        if rollout.id != trajectory.rollout_id:
            raise ValueError(f"rollout {rollout.id} was given with the trajectory of {trajectory.rollout_id}")
        if rollout.reward is None:
            if skip_unscored:
                continue
            why = rollout.state if rollout.failure is None else f"{rollout.state}, {rollout.failure.code}"
            raise ValueError(f"rollout {rollout.id} has no reward ({why}); skip_unscored=True leaves such out")
        branches = _branches(trajectory)
        full = {branch: some for branch, some in branches.items() if any(len(one.token_ids) for one in some if one.sampled)}
        if len(full) < max(1, len(branches)) and not skip_empty:
            raise ValueError(f"rollout {rollout.id} has a branch in which nothing was sampled; skip_empty=True leaves such out")
        for branch, segments in full.items():
            rows.append(_to_row((rollout, trajectory), branch, segments, branch == list(full)[-1]))
    return rows


def message_to_openai(message: Message) -> dict[str, Any]:
    """A message as chat templates and datasets have it."""
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        wire["tool_calls"] = [
            {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
            for one in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        wire["name"] = message.name
    return wire


def tool_to_openai(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _branches(trajectory: Trajectory) -> Mapping[int, tuple[Segment, ...]]:
    found: dict[int, list[Segment]] = {}
    for segment in trajectory.segments:
        found.setdefault(segment.head.branch, []).append(segment)
    return {branch: tuple(segments) for branch, segments in found.items()}


def _to_row(pair: Pair, branch: int, segments: tuple[Segment, ...], last: bool) -> Row:
    rollout, trajectory = pair
    assert rollout.reward is not None
    first = _first_sampled(segments)
    ids: list[int] = []
    mask: list[int] = []
    logprobs: list[float] = []
    for index, segment in enumerate(segments[first:], first):
        check_segment(segment, f"rollout {rollout.id}, segment {index} of branch {branch}")
        count = len(segment.token_ids)
        ids += [int(one) for one in segment.token_ids]
        mask += [1 if segment.sampled else 0] * count
        logprobs += [float(one) for one in segment.logprobs] if segment.sampled else [0.0] * count
    prompt = [int(one) for segment in segments[:first] for one in segment.token_ids]
    return Row(rollout, trajectory, branch, last, rollout.reward, prompt, ids, mask, logprobs, segments)


def _first_sampled(segments: Sequence[Segment]) -> int:
    return next(index for index, segment in enumerate(segments) if segment.sampled)
