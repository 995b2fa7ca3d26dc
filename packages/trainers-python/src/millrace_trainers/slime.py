"""slime: `generate_rollout` is its rollout function, and `post_process_rewards` normalises rewards. slime's own normalisation cuts the
list of samples into groups of equal size, so samples of branched rollouts would be compared across groups; this one counts every rollout
once, in its own group."""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any, Mapping, Optional, Sequence

from millrace.export.skyrl import to_stop_reason
from slime.rollout.base_types import RolloutFnTrainOutput

from .advantages import measure_group
from .replay import to_routed_experts, to_sampled_from
from .rollouts import Job, RolloutSource, Sampled
from .settings import SLIME
from .train_rows import TrainRow, to_train_rows

#: In the metadata of a sample whose rollout has no reward.
UNSCORED = "millrace_unscored"


def generate_rollout(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
    """`--rollout-function-path millrace_trainers.slime.generate_rollout`. The dataset's metadata (`--metadata-key`) has `task`, and may
    have `scenario`. Every sample of a rollout has its `rollout_id`; a rollout without a reward is a sample that slime removes."""
    if evaluation:
        raise NotImplementedError("evaluate with `millrace eval`, or pass slime's own function as --eval-function-path")
    groups = data_source.get_samples(args.rollout_batch_size)
    source = open_source()
    source.follow_version(rollout_id)
    samples = [one for group in groups for one in group]
    sampled = source.run([to_job(one, args) for one in samples])
    return RolloutFnTrainOutput(samples=to_groups(groups, sampled), metrics=_to_metrics(sampled))


def post_process_rewards(args: Any, samples: Sequence[Any]) -> tuple[list[float], list[float]]:
    """`--custom-reward-post-process-path millrace_trainers.slime.post_process_rewards`: as slime does it, but over rollouts."""
    raw = [float(one.get_reward_value(args)) for one in samples]
    if args.advantage_estimator not in ("grpo", "gspo", "cispo", "reinforce_plus_plus_baseline") or not args.rewards_normalization:
        return raw, list(raw)
    scored: dict[Any, dict[Any, float]] = {}
    for one, reward in zip(samples, raw):
        if not _is_unscored(one):
            scored.setdefault(one.group_index, {})[one.rollout_id] = reward
    measured = {group: measure_group(list(rewards.values()), 1) for group, rewards in scored.items()}
    divides = args.advantage_estimator != "reinforce_plus_plus_baseline" and args.grpo_std_normalization
    found: list[float] = []
    for one, reward in zip(samples, raw):
        mean, deviation = measured.get(one.group_index, (0.0, 0.0))
        if _is_unscored(one) or deviation == 0.0:
            found.append(0.0)
        else:
            found.append((reward - mean) / (deviation + 1e-6) if divides else reward - mean)
    return raw, found


@lru_cache(maxsize=None)
def open_source() -> RolloutSource:
    """One for each process, with the service and scenario of the environment."""
    return RolloutSource()


def to_job(sample: Any, args: Any) -> Job:
    metadata = sample.metadata or {}
    task = metadata.get("task")
    if not isinstance(task, Mapping):
        raise ValueError(f"sample {sample.index} has no task for Millrace: `task` in its metadata is {task!r}, not a dict")
    sampling = SLIME.read_config(args)
    # slime computes its loss over the tokens that could be sampled; Millrace records them where `top_k` bounds their number.
    if sampling.get("top_p", 1) < 1 and sampling.get("top_k", 0) > 0:
        sampling["sampling_mask"] = True
    return Job(task, group=str(sample.group_index), scenario=metadata.get("scenario"), sampling=sampling)


def to_groups(groups: Sequence[Sequence[Any]], sampled: Sequence[Sampled]) -> list[list[list[Any]]]:
    """Groups of rollouts of samples: slime flattens them in this order."""
    rows: dict[str, list[TrainRow]] = {}
    for row in to_train_rows(sampled):
        rows.setdefault(row.rollout.id, []).append(row)
    rest = iter(sampled)
    found = []
    for group in groups:
        members = [(one, rows[next(rest).rollout.id]) for one in group]
        scored = [some[0].reward for _, some in members if some[0].reward is not None]
        mean = sum(scored) / len(scored) if scored else 0.0
        found.append([[_to_sample(one, row, mean) for row in some] for one, some in members])
    return found


def _to_sample(prompt: Any, row: TrainRow, mean: float) -> Any:
    sample = copy.deepcopy(prompt)
    versions = row.policy_versions
    sample.rollout_id = prompt.index
    sample.tokens = row.prompt_ids + row.response_ids
    sample.response_length = len(row.response_ids)
    sample.loss_mask = list(row.response_mask)
    sample.rollout_log_probs = list(row.response_logprobs)
    sample.weight_versions = [] if versions is None else [str(one) for one in range(versions.first, versions.last + 1)]
    sample.session_id = row.rollout.id
    sample.metadata = {**(sample.metadata or {}), "rollout": row.rollout.id, "branch": row.branch}
    # With slime's own normalisation, the mean of the group leaves the baseline of the siblings as it is.
    sample.reward = mean if row.reward is None else row.reward
    if row.row is None:
        sample.remove_sample = True
        sample.metadata[UNSCORED] = row.reward is None
        sample.status = type(sample).Status.FAILED
        return sample
    sampled_from = to_sampled_from(row)
    if sampled_from is not None:
        sample.rollout_top_p_token_ids, sample.rollout_top_p_token_offsets = sampled_from
    experts = to_routed_experts(row)
    if experts is not None:
        sample.rollout_routed_experts = experts
    sample.response = "".join(one.head.text for one in row.row.response_segments)
    status = type(sample).Status
    sample.status = status.TRUNCATED if to_stop_reason(row.row.stop_reason) == "length" else status.COMPLETED
    return sample


def _is_unscored(sample: Any) -> bool:
    return bool((sample.metadata or {}).get(UNSCORED, False))


def _to_metrics(sampled: Sequence[Sampled]) -> dict[str, Any]:
    rewards: list[Optional[float]] = [one.rollout.reward for one in sampled]
    return {"rollout/unscored": sum(1 for one in rewards if one is None) / max(1, len(rewards))}
