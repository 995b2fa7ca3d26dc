"""Adapters for trainers. Importing this package imports no trainer: each adapter is a module with the trainer's name. These names are
what all adapters share."""

from .advantages import Scale, rollout_advantages
from .rollouts import Job, RolloutSource, Sampled
from .train_rows import TrainRow, to_train_rows
from .turns import Turn, to_turns

__all__ = [
    "Job",
    "RolloutSource",
    "Sampled",
    "Scale",
    "TrainRow",
    "Turn",
    "rollout_advantages",
    "to_train_rows",
    "to_turns",
]
