"""What trainers train on: one row for each branch of a trajectory, with a mask that is 1 exactly where the policy sampled. All other
exports are made from these rows."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence, Union

from ..batches.batch import GroupView
from ..error import show
from ..rollouts.rollout import PolicySpan, RolloutView
from ..trajectories.trajectory import Message, Segment, ToolSpec, Trajectory, check_segment
from ..wire.codec import to_wire

#: A rollout with its trajectory.
Pair = tuple[RolloutView, Trajectory]
#: What rows are made from: a rollout with its trajectory, or a group with its trajectories.
RowSource = Union[Pair, GroupView]


@dataclass(frozen=True)
class Row:
    """`prompt_ids` are the tokens before the first sampled one, `response_ids` all others. Mask and logprobs are as long as the
    response; a logprob is 0.0 where the mask is 0."""

    rollout: RolloutView
    trajectory: Trajectory
    branch: int
    #: Whether it is the last row of its rollout.
    last: bool
    #: The reward of the rollout, the same for each of its branches that has one.
    reward: float
    prompt_ids: list[int]
    response_ids: list[int]
    response_mask: list[int]
    response_logprobs: list[float]
    #: The segments of this branch, in order.
    segments: tuple[Segment, ...]
    #: Of its group; None for rows that are made from a rollout and its trajectory.
    task: Optional[Mapping[str, Any]] = None
    #: What the reward rule of a gateway or a harness gives its branch: 1, or its share of the sampled tokens with "weighted".
    weight: float = 1.0

    @property
    def policy_versions(self) -> Optional[PolicySpan]:
        spans = [one.head.policy_versions for one in self.segments if one.head.policy_versions is not None]
        return PolicySpan(min(one.first for one in spans), max(one.last for one in spans)) if spans else None

    @property
    def provenances(self) -> list[dict[str, Any]]:
        """How its tokens were sampled, as JSON: one entry, or several if different engines sampled them."""
        used = {one.head.provenance for one in self.segments}
        return [to_wire(one) for index, one in enumerate(self.trajectory.provenances) if index in used]

    @property
    def prompt_segments(self) -> Sequence[Segment]:
        return self.segments[: _first_sampled(self.segments)]

    @property
    def response_segments(self) -> Sequence[Segment]:
        return self.segments[_first_sampled(self.segments) :]

    @property
    def sampling_mask(self) -> Optional[list[list[int]]]:
        """For each token of the response, the ids that it was sampled from; empty where the mask is 0. None if a sampled segment
        has no sampling mask."""
        rows: list[list[int]] = []
        for segment in self.response_segments:
            if segment.sampled and len(segment.token_ids) and segment.sampling_mask is None:
                return None
            rows += [[] for _ in segment.token_ids] if segment.sampling_mask is None else segment.sampling_mask.rows()
        return rows

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation of this branch in the form of OpenAI's API. Empty once retention has dropped the texts."""
        return [message_to_openai(one) for segment in self.segments for one in segment.head.messages]

    @property
    def score(self) -> Mapping[str, Any]:
        """What the verifier reported in addition to the reward."""
        return {} if self.rollout.result is None else self.rollout.result.score

    @property
    def stop_reason(self) -> Optional[str]:
        return None if self.rollout.result is None else self.rollout.result.stop_reason


def to_rows(
    source: Union[RowSource, Iterable[RowSource]], *, skip_unscored: bool = False, skip_empty: bool = False
) -> list[Row]:
    """Takes a (rollout, trajectory) pair, a group, or an iterable of either, and keeps their order. A rollout without a reward is
    an error, or skipped with `skip_unscored`: a missing reward is not a reward of 0. A branch to which the reward rule gives no
    reward has no row. A branch in which nothing was sampled is an
    error, or skipped with `skip_empty`."""
    rows: list[Row] = []
    for (rollout, trajectory), task in _to_pairs(source):
        if rollout.id != trajectory.rollout_id:
            raise ValueError(f"rollout {rollout.id} is paired with the trajectory of {trajectory.rollout_id}")
        if rollout.reward is None:
            if skip_unscored:
                continue
            why = rollout.state if rollout.failure is None else f"{rollout.state}, {rollout.failure.code}"
            raise ValueError(f"rollout {rollout.id} has no reward ({why}); skip_unscored=True skips such rollouts")
        branches = _branches(trajectory)
        full = {branch: some for branch, some in branches.items() if any(len(one.token_ids) for one in some if one.sampled)}
        if len(full) < max(1, len(branches)) and not skip_empty:
            raise ValueError(f"rollout {rollout.id} has a branch in which nothing was sampled; skip_empty=True skips such branches")
        weights = _weights(rollout)
        trained = [branch for branch in full if weights.get(branch, 1.0) > 0]
        for branch in trained:
            row = _to_row((rollout, trajectory), branch, full[branch], branch == trained[-1])
            rows.append(dataclasses.replace(row, task=task, weight=weights.get(branch, 1.0)))
    return rows


def message_to_openai(message: Message) -> dict[str, Any]:
    """A message in the form that chat templates and datasets use."""
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.reasoning is not None:
        wire["reasoning_content"] = message.reasoning
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


def _to_pairs(source: Any) -> Iterator[tuple[Pair, Optional[Mapping[str, Any]]]]:
    """Pairs, with the task of the group that they are from."""
    if isinstance(source, GroupView) or _is_pair(source):
        yield from _pairs_of(source)
    elif isinstance(source, Iterable) and not isinstance(source, (str, Mapping)):
        for one in source:
            yield from _pairs_of(one)
    else:
        raise _wrong_source(source)


def _pairs_of(source: Any) -> Iterable[tuple[Pair, Optional[Mapping[str, Any]]]]:
    if isinstance(source, GroupView):
        if source.trajectories is None:
            raise ValueError(f"group {source.id} has no trajectories; read it with groups(..., trajectories=True)")
        return ((pair, source.task) for pair in zip(_scored(source), source.trajectories))
    if _is_pair(source):
        return ((source, None),)
    raise _wrong_source(source)


def _scored(group: GroupView) -> Iterator[RolloutView]:
    """A penalised member has no reward of its own: that of the group counts."""
    for index, rollout in enumerate(group.rollouts):
        is_penalised = rollout.reward is None and len(group.rewards) == len(group.rollouts)
        yield dataclasses.replace(rollout, reward=group.rewards[index]) if is_penalised else rollout


def _is_pair(source: Any) -> bool:
    if not isinstance(source, (tuple, list)) or len(source) != 2:
        return False
    return isinstance(source[0], RolloutView) and isinstance(source[1], Trajectory)


def _wrong_source(source: Any) -> TypeError:
    hint = f"; pass (rollout, client.trajectory({source.id!r}))" if isinstance(source, RolloutView) else ""
    return TypeError(f"to_rows expects (rollout, trajectory) pairs or groups, not {show(source)}{hint}")


def _weights(rollout: RolloutView) -> Mapping[int, float]:
    """Of the branches of a gateway or a harness."""
    score = rollout.result.score if rollout.result is not None else {}
    report = score.get("harness") or score.get("gateway")
    branches = report.get("branches") if isinstance(report, Mapping) else None
    if not isinstance(branches, list):
        return {}
    return {one["branch"]: float(one["weight"]) for one in branches if isinstance(one, Mapping) and "weight" in one}


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
