"""TRL: `MillraceRollouts` is a `rollout_func` of GRPOTrainer; `MillraceRolloutWorker` and `MillraceWeightTransfer` are the
`rollout_worker` and `weight_transfer` of AsyncGRPOTrainer."""

from millrace.export import reward_from_rollout

from ..versions import trainer_imports
from .rollout_func import MillraceRollouts
from .rollout_worker import MillraceRolloutWorker, MillraceWeightTransfer

with trainer_imports("trl"):
    import trl  # noqa: F401

__all__ = ["MillraceRolloutWorker", "MillraceRollouts", "MillraceWeightTransfer", "reward_from_rollout"]
