"""What slime's rollout functions return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class RolloutFnTrainOutput:
    """Groups of rollouts of samples, and metrics."""

    samples: Any
    metrics: Any = None
