"""SkyRL: `MillraceGenerator` is its generator. In step-wise training every branch is a step, SkyRL computes the advantage of a rollout
once, and rollouts without a reward are left out. Otherwise SkyRL takes one row for each prompt: of a rollout with several branches the
last, and for one without a reward a row whose loss mask is zero."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any, Mapping, Optional, Sequence

from millrace import Sampling
from millrace.export.skyrl import to_stop_reason

from .advantages import fill_rewards
from .replay import fill_routed_experts
from .rollouts import Job, RolloutSource
from .settings import SKYRL
from .train_rows import TrainRow, to_train_rows
from .versions import trainer_imports

with trainer_imports("skyrl", hint="pip install 'skyrl[skyrl-train]', which its trainer needs"):
    from skyrl.train.generators.base import GeneratorInput, GeneratorInterface, GeneratorOutput, TrajectoryID


class MillraceGenerator(GeneratorInterface):
    """Return it from `get_generator` of your `BasePPOExp`. `step_wise` is `cfg.generator.step_wise_trajectories`. A dataset row has its
    task in the column `task`, and may name its `scenario`."""

    def __init__(
        self, source: RolloutSource, *, step_wise: bool = False, max_response: Optional[int] = None, filler_id: int = 0
    ) -> None:
        self.source = source
        self.step_wise = step_wise
        self.max_response = max_response
        self.filler_id = filler_id

    async def generate(self, input_batch: GeneratorInput, disable_tqdm: bool = False) -> GeneratorOutput:
        jobs = to_jobs(input_batch)
        metadata = input_batch.get("batch_metadata")
        trained = metadata is None or metadata.training_phase == "train"
        if metadata is not None and trained:
            # SkyRL counts steps from 1 and loads new weights between two calls.
            await asyncio.to_thread(self.source.follow_version, metadata.global_step - 1)
        sampled = await asyncio.to_thread(self.source.run, jobs, trained=trained)
        ids = to_trajectory_ids(input_batch)
        by_rollout = {one.rollout.id: trajectory for one, trajectory in zip(sampled, ids)}
        rows = to_train_rows(sampled, filler_id=self.filler_id, max_response=self.max_response)
        kept = leave_out_unscored(rows) if self.step_wise else [row for row in rows if row.last]
        output = to_output(kept, [by_rollout[row.rollout.id] for row in kept], step_wise=self.step_wise)
        output["rollout_metrics"] = to_metrics(rows)
        return output


def to_jobs(batch: GeneratorInput) -> list[Job]:
    extras = batch.get("env_extras") or []
    if len(extras) != len(batch["prompts"]):
        raise ValueError(f"{len(batch['prompts'])} prompts with {len(extras)} env_extras: each dataset row needs the column `task`")
    sampling = to_sampling(batch.get("sampling_params") or {})
    jobs = []
    for extra, identity in zip(extras, to_trajectory_ids(batch)):
        task = extra.get("task")
        if not isinstance(task, Mapping):
            raise ValueError(f"the dataset row {identity.instance_id} has no task for Millrace: `task` is {task!r}, not a dict")
        jobs.append(Job(task, group=identity.instance_id, scenario=extra.get("scenario"), sampling=sampling))
    return jobs


def to_sampling(params: Mapping[str, Any]) -> Sampling:
    """SkyRL's `sampling_params`; `additional_kwargs` count where nothing else names them, as in SkyRL."""
    extra = params.get("additional_kwargs") or {}
    outer = {name: value for name, value in params.items() if name != "additional_kwargs"}
    return {**SKYRL.read(extra, within="additional_kwargs."), **SKYRL.read(outer)}


def to_trajectory_ids(batch: GeneratorInput) -> list[TrajectoryID]:
    given = batch.get("trajectory_ids")
    if given is not None:
        return list(given)
    return [TrajectoryID(instance_id=str(index), repetition_id=0) for index in range(len(batch["prompts"]))]


def leave_out_unscored(rows: Sequence[TrainRow]) -> list[TrainRow]:
    """Rows of rollouts that can be trained on. A group without any keeps one placeholder, because SkyRL counts groups."""
    trained = {row.group for row in rows if not row.placeholder}
    kept, seen = [], set(trained)
    for row in rows:
        if not row.placeholder or row.group not in seen:
            seen.add(row.group)
            kept.append(row)
    return kept


def to_output(rows: Sequence[TrainRow], ids: Sequence[TrajectoryID], *, step_wise: bool) -> GeneratorOutput:
    rewards, experts = fill_rewards(rows), fill_routed_experts(rows)
    timings = [None if row.rollout.result is None else row.rollout.result.timings for row in rows]
    output: dict[str, Any] = {
        "prompt_token_ids": [row.prompt_ids for row in rows],
        "response_ids": [row.response_ids for row in rows],
        "rewards": rewards,
        "loss_masks": [row.response_mask for row in rows],
        "stop_reasons": [to_stop_reason(None if row.row is None else row.row.stop_reason) for row in rows],
        "rollout_metrics": None,
        "rollout_logprobs": [row.response_logprobs for row in rows],
        "trajectory_ids": list(ids),
        "trajectory_generation_times": [0.0 if one is None else one.run_ms / 1000 for one in timings],
        "rollout_expert_indices": None if experts is None else [_pack(one) for one in experts],
        "is_last_step": [row.last for row in rows] if step_wise else None,
        "env_metrics": None,
        "pixel_values": None,
        "image_grid_thw": None,
    }
    return output  # type: ignore[return-value]


def _pack(experts: list[list[list[int]]]) -> Any:
    """SkyRL 0.3 takes lists, and 0.4 arrays of the smallest type."""
    if not _TAKES_ARRAYS:
        return experts
    numpy = importlib.import_module("numpy")
    found = numpy.asarray(experts, dtype=numpy.int32)
    return found.astype(numpy.uint8 if found.max() < 256 else numpy.int16)


def _takes_arrays() -> bool:
    try:
        return hasattr(importlib.import_module("skyrl.backends.skyrl_train.utils.routed_experts"), "ROUTED_EXPERT_DTYPES")
    except ModuleNotFoundError:
        return False  # SkyRL 0.3 has no such module.


_TAKES_ARRAYS = _takes_arrays()


def to_metrics(rows: Sequence[TrainRow]) -> dict[str, Any]:
    spans = [row.policy_versions for row in rows if row.policy_versions is not None]
    rollouts = {row.rollout.id: row.reward for row in rows}
    metrics = {
        "generate/unscored_rollouts": float(sum(1 for reward in rollouts.values() if reward is None)),
        "generate/branches_per_rollout": len(rows) / max(1, len(rollouts)),
    }
    if spans:
        metrics["generate/policy_version_min"] = float(min(one.first for one in spans))
        metrics["generate/policy_version_max"] = float(max(one.last for one in spans))
    return metrics
