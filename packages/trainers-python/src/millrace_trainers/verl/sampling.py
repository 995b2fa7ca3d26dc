"""What verl asks for, as Millrace understands it: the task of a dataset row, sampling parameters, and policy versions."""

from __future__ import annotations

from typing import Any, Mapping

from millrace import Sampling

from ..settings import VERL, VERL_CONFIG

#: What verl passes for a row with `__do_sample__` false, as the baseline of ReMax.
GREEDY = {"temperature": 0.0, "top_p": 1.0, "top_k": -1}


def read_task(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The column `task`, or `extra_info.task`."""
    extra = row.get("extra_info")
    task = row.get("task", extra.get("task") if isinstance(extra, Mapping) else None)
    if not isinstance(task, Mapping):
        raise ValueError(f"the dataset row has no task for Millrace: expected a dict in `task` or `extra_info.task`, not {task!r}")
    return task


def to_sampling(params: Mapping[str, Any], rollout_config: Any) -> Sampling:
    """What verl passes to an agent loop, and what its configuration says for all rollouts."""
    return {**VERL.read(params), **VERL_CONFIG.read_config(rollout_config)}


def to_params(rollout_config: Any, *, validate: bool) -> dict[str, Any]:
    """What verl's own workers pass to their agent loops. As they do, `do_sample` of `val_kwargs` is not read: their temperature counts."""
    config = rollout_config.val_kwargs if validate else rollout_config
    return {name: config.get(name) for name in ("temperature", "top_p", "top_k")}


def to_policy_version(global_steps: int) -> int:
    """verl samples for step k with the weights that step k - 1 left, and calls those k - 1."""
    return max(0, global_steps - 1)
