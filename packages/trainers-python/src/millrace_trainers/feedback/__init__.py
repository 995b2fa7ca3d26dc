"""What a training loop learns from rollouts besides gradients: numbers for W&B, TensorBoard and MLflow, and which tasks come next."""

from .curriculum import Curriculum
from .metrics import Tracker, to_metrics

__all__ = ["Curriculum", "Tracker", "to_metrics"]
