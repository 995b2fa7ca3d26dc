"""Adapters for trainers. Importing this package imports no trainer: each adapter is a module with the trainer's name. These names are
what all adapters share."""

from .advantages import Scale, fill_rewards, rollout_advantages
from .logprobs import LogprobsError, LogprobsRule
from .replay import fill_routed_experts, to_routed_experts, to_sampled_from
from .rollouts import Job, RolloutSource, Sampled
from .settings import Settings, TaskError
from .train_rows import TrainRow, to_train_rows
from .turns import Turn, to_turns

__all__ = [
    "Job",
    "LogprobsError",
    "LogprobsRule",
    "RolloutSource",
    "Sampled",
    "Scale",
    "Settings",
    "TaskError",
    "TrainRow",
    "Turn",
    "fill_rewards",
    "fill_routed_experts",
    "rollout_advantages",
    "to_routed_experts",
    "to_sampled_from",
    "to_train_rows",
    "to_turns",
]
