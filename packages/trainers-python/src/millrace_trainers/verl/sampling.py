"""What verl asks for, as Millrace understands it: the task of a dataset row, sampling parameters, and policy versions."""

from __future__ import annotations

from typing import Any, Mapping

from millrace import Sampling


def read_task(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The column `task`, or `extra_info.task`."""
    extra = row.get("extra_info")
    task = row.get("task", extra.get("task") if isinstance(extra, Mapping) else None)
    if not isinstance(task, Mapping):
        raise ValueError(f"the dataset row has no task for Millrace: expected a dict in `task` or `extra_info.task`, not {task!r}")
    return task


def to_sampling(params: Mapping[str, Any], rollout_config: Any) -> Sampling:
    """verl writes a `top_k` of -1 for none. With `enable_rollout_routing_replay`, the experts of each token are recorded."""
    replays = bool(rollout_config.get("enable_rollout_routing_replay", False))
    return {
        **({"routed_experts": True} if replays else {}),  # type: ignore[typeddict-item]
        "temperature": float(params.get("temperature", 1.0)),
        "top_p": float(params.get("top_p", 1.0)),
        "top_k": max(0, int(params.get("top_k", 0))),
        "repetition_penalty": float(params.get("repetition_penalty", 1.0)),
        "max_tokens": int(rollout_config.response_length),
    }


def to_policy_version(global_steps: int) -> int:
    """verl samples for step k with the weights that step k - 1 left, and calls those k - 1."""
    return max(0, global_steps - 1)
