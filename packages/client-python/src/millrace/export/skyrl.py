"""Rows as SkyRL's GeneratorOutput: a dict of lists of equal length, in the order of the rows."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence

from .rows import Row

_LIMITS = ("max_turns", "max_tokens", "context_overflow", "rollout_timeout", "loop")


class TrajectoryId(NamedTuple):
    """As SkyRL's TrajectoryID: the group, and the index of the rollout in it."""

    instance_id: str
    repetition_id: int

    def to_string(self) -> str:
        return f"{self.instance_id}_{self.repetition_id}"


def to_skyrl(rows: Sequence[Row]) -> dict[str, Any]:
    """The rows of a rollout with several branches are adjacent, and `is_last_step` is true for the last of them."""
    timings = [None if row.rollout.result is None else row.rollout.result.timings for row in rows]
    known = [one for one in timings if one is not None]
    output: dict[str, Any] = {
        "prompt_token_ids": [row.prompt_ids for row in rows],
        "response_ids": [row.response_ids for row in rows],
        "rewards": [row.reward for row in rows],
        "loss_masks": [row.response_mask for row in rows],
        "stop_reasons": [to_stop_reason(row.stop_reason) for row in rows],
        "rollout_metrics": None,
        "rollout_logprobs": [row.response_logprobs for row in rows],
        "trajectory_ids": _to_trajectory_ids(rows),
        "trajectory_generation_times": [one.run_ms / 1000 for one in known] if len(known) == len(rows) else None,
        "is_last_step": [row.last for row in rows],
    }
    return output


def to_stop_reason(stop_reason: Optional[str]) -> str:
    """`length` if a limit stopped the agent, otherwise `stop`."""
    return "length" if stop_reason in _LIMITS else "stop"


def _to_trajectory_ids(rows: Sequence[Row]) -> list[TrajectoryId]:
    indexes: dict[str, dict[str, int]] = {}
    ids = []
    for row in rows:
        group = row.rollout.group or row.rollout.id
        members = indexes.setdefault(group, {})
        index = members.setdefault(row.rollout.id, len(members))
        ids.append(TrajectoryId(group, index))
    return ids
