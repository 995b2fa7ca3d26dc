"""Rows as the agent loops of verl return them: prompt and response ids, the mask of sampled tokens, their logprobs, the score."""

from __future__ import annotations

from typing import Any, Iterable, Optional

from .rows import Row


def to_verl(rows: Iterable[Row], *, response_length: Optional[int] = None) -> list[dict[str, Any]]:
    """`response_length` cuts longer responses, as verl requires of its agent loops."""
    return [_to_output(row, response_length) for row in rows]


def _to_output(row: Row, length: Optional[int]) -> dict[str, Any]:
    versions = row.policy_versions
    # verl cannot use a version that is None: without one, the field is absent.
    steps = {} if versions is None else {"min_global_steps": versions.first, "max_global_steps": versions.last}
    timings = None if row.rollout.result is None else row.rollout.result.timings
    metrics = {} if timings is None else {"generate_sequences": timings.model_ms / 1000, "tool_calls": timings.tool_ms / 1000}
    return {
        "prompt_ids": row.prompt_ids,
        "response_ids": row.response_ids[:length],
        "response_mask": row.response_mask[:length],
        "response_logprobs": row.response_logprobs[:length],
        "reward_score": row.reward,
        # verl counts the messages of both sides: the user's first one, then replies and tool results in turn.
        "num_turns": 1 + sum(1 for one in row.response_segments if one.kind in ("sampled", "observation")),
        "metrics": metrics,
        "extra_fields": {
            "rollout_id": row.rollout.id,
            "group": row.rollout.group,
            "branch": row.branch,
            "stop_reason": row.stop_reason,
            "provenances": row.provenances,
            "reward_extra_info": _to_reward_info(row),
            **steps,
        },
    }


def _to_reward_info(row: Row) -> dict[str, float]:
    """For verl's metrics and for DAPO's filter of groups: the reward as `score` and `acc`, and the numbers that the verifier reported."""
    score = {} if row.rollout.result is None else row.rollout.result.score
    numbers = {name: float(value) for name, value in score.items() if isinstance(value, (int, float))}
    return {**numbers, "score": row.reward, "acc": row.reward}
