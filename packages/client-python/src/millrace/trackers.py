"""Callbacks that write the steps of a trainer to Weights & Biases, MLflow or TensorBoard. None of them is a dependency: each takes the
tracker's own object.

    import wandb
    from millrace.trackers import to_wandb

    log = to_wandb(wandb.init(project="millrace"))
    for step in client.trainer.steps():
        log(step)
"""

from __future__ import annotations

import math
import re
from typing import Any, Callable

from .service.trainer import TrainerStepView

#: Takes a step, as `client.trainer.post` and `client.trainer.steps` return it.
StepCallback = Callable[[TrainerStepView], None]


def to_numbers(step: TrainerStepView) -> dict[str, float]:
    """All numbers of a step by name: `trainer/loss`, `trainer/mismatch/mean_abs`, `trainer/mismatch/BACKEND`, and its own metrics."""
    known = {"loss": step.loss, "kl": step.kl, "entropy": step.entropy, "clip_share": step.clip_share}
    numbers = {f"trainer/{name}": value for name, value in known.items() if value is not None}
    if step.policy_version is not None:
        numbers["trainer/policy_version"] = float(step.policy_version)
    tokens = sum(one.tokens for one in step.mismatch)
    if tokens > 0:
        numbers["trainer/mismatch/mean_abs"] = sum(one.mean_abs * one.tokens for one in step.mismatch) / tokens
        numbers["trainer/mismatch/kl"] = sum(one.kl * one.tokens for one in step.mismatch) / tokens
        numbers["trainer/mismatch/most_abs"] = max(one.most_abs for one in step.mismatch)
    for backend in sorted({one.backend for one in step.mismatch}):
        own = [one for one in step.mismatch if one.backend == backend]
        count = sum(one.tokens for one in own)
        numbers[f"trainer/mismatch/{backend}"] = sum(one.mean_abs * one.tokens for one in own) / count
    numbers.update(step.metrics)
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def to_wandb(run: Any) -> StepCallback:
    """`run` is what `wandb.init` returns."""
    return lambda step: run.log(to_numbers(step), step=step.step)


def to_mlflow(tracking: Any) -> StepCallback:
    """`tracking` is the module `mlflow`, with an active run."""

    def log(step: TrainerStepView) -> None:
        tracking.log_metrics({to_mlflow_name(name): value for name, value in to_numbers(step).items()}, step=step.step)

    return log


def to_mlflow_name(name: str) -> str:
    """MLflow refuses a whole step for one name with other signs than these, as of a backend with its port or a part of a score."""
    return re.sub(r"[^\w.\- /]", "_", name.replace(":", "/"))


def to_tensorboard(writer: Any) -> StepCallback:
    """`writer` is a `SummaryWriter` of torch.utils.tensorboard or tensorboardX."""

    def log(step: TrainerStepView) -> None:
        for name, value in to_numbers(step).items():
            writer.add_scalar(name, value, step.step)

    return log
