"""TRL: `MillraceRollouts` is a `rollout_func` of GRPOTrainer; `MillraceRolloutWorker` and `MillraceWeightTransfer` are the
`rollout_worker` and `weight_transfer` of AsyncGRPOTrainer."""

from millrace.export import reward_from_rollout

from .rollout_func import MillraceRollouts
from .rollout_worker import MillraceRolloutWorker, MillraceWeightTransfer

__all__ = ["MillraceRolloutWorker", "MillraceRollouts", "MillraceWeightTransfer", "reward_from_rollout"]
