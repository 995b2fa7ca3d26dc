"""Rows as the agent loops of verl return them: prompt and response ids, the mask of sampled tokens, their logprobs, the score."""

from __future__ import annotations

from typing import Any, Iterable

from .rows import Row


def to_verl(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [_to_output(row) for row in rows]


def _to_output(row: Row) -> dict[str, Any]:
    versions = row.policy_versions
    timings = None if row.rollout.result is None else row.rollout.result.timings
    metrics = {} if timings is None else {"generate_sequences": timings.model_ms / 1000, "tool_calls": timings.tool_ms / 1000}
    return {
        "prompt_ids": row.prompt_ids,
        "response_ids": row.response_ids,
        "response_mask": row.response_mask,
        "response_logprobs": row.response_logprobs,
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
            "min_global_steps": None if versions is None else versions.first,
            "max_global_steps": None if versions is None else versions.last,
        },
    }
