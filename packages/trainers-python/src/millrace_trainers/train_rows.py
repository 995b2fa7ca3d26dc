"""What a trainer with fixed counts takes: at least one row for every rollout. A rollout that cannot be trained on is a placeholder row,
whose mask is zero everywhere, so that it fills its place and teaches nothing."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Iterable, Optional, Sequence

from millrace import PolicySpan, RolloutView
from millrace.export import Row, to_rows

from .rollouts import Sampled


@dataclass(frozen=True)
class TrainRow:
    """`prompt_ids` are the tokens before the first sampled one. Mask and logprobs are as long as `response_ids`."""

    rollout: RolloutView
    #: The group of the rollout, or its own id without one.
    group: str
    branch: int
    #: Whether it is the last row of its rollout; a rollout has one row for each branch.
    last: bool
    #: None if no verifier measured it. Never 0 for that.
    reward: Optional[float]
    prompt_ids: list[int]
    response_ids: list[int]
    response_mask: list[int]
    response_logprobs: list[float]
    policy_versions: Optional[PolicySpan]
    #: None for a placeholder.
    row: Optional[Row]

    @property
    def placeholder(self) -> bool:
        return self.row is None


def to_train_rows(sampled: Iterable[Sampled], *, filler_id: int = 0, max_response: Optional[int] = None) -> list[TrainRow]:
    """Keeps the order; the rows of a rollout are adjacent. The response of a placeholder is one token, `filler_id`; its prompt is that of
    its rollout, or else of a sibling, or else `filler_id` too. `max_response` cuts longer responses, as trainers with a fixed length do."""
    given = list(sampled)
    prompts = _find_prompts(given)
    rows: list[TrainRow] = []
    for one in given:
        found = [] if one.rollout.reward is None or one.trajectory is None else to_rows((one.rollout, one.trajectory), skip_empty=True)
        if found:
            rows += [_cut(_from_row(row), max_response) for row in found]
        else:
            rows.append(_to_placeholder(one, prompts.get(_group_of(one.rollout)) or [filler_id], filler_id))
    return rows


def _from_row(row: Row) -> TrainRow:
    return TrainRow(
        rollout=row.rollout,
        group=_group_of(row.rollout),
        branch=row.branch,
        last=row.last,
        reward=row.reward,
        prompt_ids=row.prompt_ids,
        response_ids=row.response_ids,
        response_mask=row.response_mask,
        response_logprobs=row.response_logprobs,
        policy_versions=row.policy_versions,
        row=row,
    )


def _cut(row: TrainRow, length: Optional[int]) -> TrainRow:
    if length is None or len(row.response_ids) <= length:
        return row
    return dataclasses.replace(
        row,
        response_ids=row.response_ids[:length],
        response_mask=row.response_mask[:length],
        response_logprobs=row.response_logprobs[:length],
    )


def _to_placeholder(one: Sampled, sibling_prompt: Sequence[int], filler_id: int) -> TrainRow:
    own = _opening_of(one)
    return TrainRow(
        rollout=one.rollout,
        group=_group_of(one.rollout),
        branch=0,
        last=True,
        reward=one.rollout.reward,
        prompt_ids=own or list(sibling_prompt),
        response_ids=[filler_id],
        response_mask=[0],
        response_logprobs=[0.0],
        policy_versions=None if one.rollout.result is None else one.rollout.result.policy_versions,
        row=None,
    )


def _find_prompts(sampled: Sequence[Sampled]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for one in sampled:
        opening = _opening_of(one)
        if opening:
            found.setdefault(_group_of(one.rollout), opening)
    return found


def _opening_of(one: Sampled) -> list[int]:
    ids: list[int] = []
    for segment in () if one.trajectory is None else one.trajectory.segments:
        if segment.sampled:
            break
        ids += [int(token) for token in segment.token_ids]
    return ids


def _group_of(rollout: RolloutView) -> str:
    return rollout.group or rollout.id
