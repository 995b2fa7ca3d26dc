"""A row as turns: for each reply of the policy, exactly what it saw and what it sampled. For trainers that take one sample per turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from millrace import PolicySpan, Segment
from millrace.export import Row


@dataclass(frozen=True)
class Turn:
    """`completion_ids` were sampled after `prompt_ids`. Every sampled token of a rollout is in exactly one turn."""

    #: The number of the turn in its rollout, as in the trajectory.
    number: int
    branch: int
    #: Everything that the model saw, earlier turns included.
    prompt_ids: list[int]
    completion_ids: list[int]
    #: As long as `completion_ids`.
    logprobs: list[float]
    #: Of the rollout, the same for each of its turns.
    reward: float
    #: Whether it is the last turn of its rollout.
    last: bool
    #: One, or several if a pause cut the turn and it went on under other weights.
    segments: tuple[Segment, ...]

    @property
    def loss_mask(self) -> list[int]:
        """Over prompt and completion: 1 where the policy sampled in this turn."""
        return [0] * len(self.prompt_ids) + [1] * len(self.completion_ids)

    @property
    def policy_versions(self) -> Optional[PolicySpan]:
        spans = [one.head.policy_versions for one in self.segments if one.head.policy_versions is not None]
        return PolicySpan(min(one.first for one in spans), max(one.last for one in spans)) if spans else None

    @property
    def finish_reason(self) -> Optional[str]:
        return self.segments[-1].head.finish_reason

    @property
    def text(self) -> str:
        return "".join(one.head.text for one in self.segments)


def to_turns(row: Row) -> list[Turn]:
    parts: list[tuple[list[int], list[Segment]]] = []
    seen: list[int] = []
    for segment in row.segments:
        if segment.sampled:
            if parts and parts[-1][1][-1].head.turn == segment.head.turn:
                parts[-1][1].append(segment)
            else:
                parts.append((list(seen), [segment]))
        seen += [int(one) for one in segment.token_ids]
    return [_to_turn(row, prompt, segments, index == len(parts) - 1) for index, (prompt, segments) in enumerate(parts)]


def _to_turn(row: Row, prompt_ids: list[int], segments: list[Segment], last_of_row: bool) -> Turn:
    return Turn(
        number=segments[0].head.turn,
        branch=row.branch,
        prompt_ids=prompt_ids,
        completion_ids=[int(one) for segment in segments for one in segment.token_ids],
        logprobs=[float(one) for segment in segments for one in segment.logprobs],
        reward=row.reward,
        last=row.last and last_of_row,
        segments=tuple(segments),
    )
