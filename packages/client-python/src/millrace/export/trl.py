"""Rows as a `rollout_func` of TRL returns them: one completion for each prompt, `env_mask` 1 where the model sampled, and the
reward as an extra column for a reward function."""

from __future__ import annotations

from typing import Any, Optional, Protocol, Sequence

from ..rollouts.rollout import RolloutView
from .rows import Row


class TrlRow(Protocol):
    """What a completion of TRL is made from."""

    @property
    def rollout(self) -> RolloutView: ...

    @property
    def prompt_ids(self) -> list[int]: ...

    @property
    def response_ids(self) -> list[int]: ...

    @property
    def response_mask(self) -> list[int]: ...

    @property
    def response_logprobs(self) -> list[float]: ...

    @property
    def reward(self) -> Optional[float]: ...


def to_trl(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """TRL takes one completion for each prompt, so a rollout with several branches is an error."""
    for row in rows:
        if not row.last:
            raise ValueError(f"rollout {row.rollout.id} has several branches, and TRL takes one completion for each prompt")
    return to_trl_columns(rows)


def to_trl_columns(rows: Sequence[TrlRow]) -> dict[str, list[Any]]:
    """`reward` goes to `reward_from_rollout`; None is a completion that cannot be scored."""
    return {
        "prompt_ids": [row.prompt_ids for row in rows],
        "completion_ids": [row.response_ids for row in rows],
        "logprobs": [row.response_logprobs for row in rows],
        "env_mask": [row.response_mask for row in rows],
        "reward": [row.reward for row in rows],
        "rollout_id": [row.rollout.id for row in rows],
    }


def reward_from_rollout(completions: Sequence[Any], reward: Sequence[Optional[float]], **_: Any) -> list[Optional[float]]:
    """A TRL reward function that passes on the reward of the rollout. None stays None: TRL leaves such completions out of its baseline."""
    if len(reward) != len(completions):
        raise ValueError(f"{len(reward)} rewards for {len(completions)} completions")
    return [None if one is None else float(one) for one in reward]
