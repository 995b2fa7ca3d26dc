"""Rows as dicts for slime's `Sample.from_dict`: `tokens` is prompt and response; mask and logprobs are as long as the response."""

from __future__ import annotations

import itertools
from typing import Any, Optional, Sequence

from .rows import Row, message_to_openai
from .skyrl import to_stop_reason


def to_slime(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """`group_index` numbers the groups in the order of their first row; a rollout without a group is its own group. `rollout_id` numbers
    the rollouts: branches of one rollout share it. slime normalises rewards over samples; where rollouts have branches, use
    `millrace_trainers.slime.post_process_rewards`, which counts every rollout once."""
    groups: dict[str, int] = {}
    rollouts: dict[str, int] = {}
    numbers = [rollouts.setdefault(row.rollout.id, len(rollouts)) for row in rows]
    return [{"rollout_id": numbers[index], **_to_sample(row, index, groups)} for index, row in enumerate(rows)]


def _to_sample(row: Row, index: int, groups: dict[str, int]) -> dict[str, Any]:
    group = row.rollout.group or row.rollout.id
    versions = row.policy_versions
    return {
        **_to_top_p(row.sampling_mask),
        "group_index": groups.setdefault(group, len(groups)),
        "index": index,
        "prompt": [message_to_openai(one) for segment in row.prompt_segments for one in segment.head.messages],
        "tokens": row.prompt_ids + row.response_ids,
        "response": "".join(one.head.text for one in row.response_segments),
        "response_length": len(row.response_ids),
        "label": None,
        "reward": row.reward,
        "loss_mask": row.response_mask,
        "weight_versions": [] if versions is None else [str(one) for one in range(versions.first, versions.last + 1)],
        "rollout_log_probs": row.response_logprobs,
        "status": "truncated" if to_stop_reason(row.stop_reason) == "length" else "completed",
        "session_id": row.rollout.id,
        "metadata": {
            **(row.rollout.metadata or {}),
            "rollout_id": row.rollout.id,
            "group": row.rollout.group,
            "branch": row.branch,
            "stop_reason": row.stop_reason,
            "provenances": row.provenances,
        },
    }


def _to_top_p(masks: Optional[list[list[int]]]) -> dict[str, Any]:
    """The ids that response token i was sampled from are `ids[offsets[i]:offsets[i + 1]]`; none for tokens that were not sampled."""
    if masks is None:
        return {}
    offsets = [0, *itertools.accumulate(len(one) for one in masks)]
    return {"rollout_top_p_token_ids": [one for mask in masks for one in mask], "rollout_top_p_token_offsets": offsets}
