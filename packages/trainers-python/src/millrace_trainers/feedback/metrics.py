"""Numbers about rollouts, and the trackers that they are written to. Trackers are imported only when they are asked for."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any, Callable, Iterable, Literal, Mapping, Optional

from millrace import RolloutView
from millrace.trackers import to_mlflow_name

from ..rollouts import Sampled

TrackerName = Literal["wandb", "tensorboard", "mlflow"]
_TIMES = ("queued_ms", "init_ms", "ready_ms", "run_ms", "cache_wait_ms", "evaluate_ms", "model_ms", "tool_ms")


def to_metrics(sampled: Iterable[Sampled], *, prefix: str = "rollout/") -> dict[str, float]:
    """Means over rollouts; a rollout without a reward counts in `unscored`, and in no mean of rewards or scores."""
    views = [one.rollout for one in sampled]
    results = [view.result for view in views if view.result is not None]
    rewards = [view.reward for view in views if view.reward is not None]
    found: dict[str, float] = {"count": float(len(views)), "unscored": _share(views, lambda view: view.reward is None)}
    if rewards:
        found.update({"reward/mean": _mean(rewards), "reward/min": min(rewards), "reward/max": max(rewards)})
    if results:
        found["turns/mean"] = _mean([one.turns for one in results])
        found["tokens/sampled_mean"] = _mean([one.tokens.sampled for one in results])
        found["malformed_calls/mean"] = _mean([one.malformed_calls for one in results])
        found.update({f"seconds/{name[:-3]}": _mean([getattr(one.timings, name) for one in results]) / 1000 for name in _TIMES})
        spans = [one.policy_versions for one in results if one.policy_versions is not None]
        if spans:
            found["policy_version/min"] = float(min(one.first for one in spans))
            found["policy_version/max"] = float(max(one.last for one in spans))
    for reason in sorted({one.stop_reason for one in results if one.stop_reason is not None}):
        found[f"stop/{reason}"] = sum(1 for one in results if one.stop_reason == reason) / len(views)
    for code in sorted({view.failure.code for view in views if view.failure is not None}):
        found[f"failed/{code}"] = sum(1 for view in views if view.failure is not None and view.failure.code == code) / len(views)
    found.update(_to_scores(views))
    return {f"{prefix}{name}": value for name, value in found.items()}


class Tracker:
    """Writes metrics to each tracker by name: `wandb` and `mlflow` to the run that is open in this process, `tensorboard` to `folder`."""

    def __init__(self, *names: TrackerName, folder: Optional[str] = None) -> None:
        self._writers = [_open(name, folder) for name in names]

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        for write in self._writers:
            write(metrics, step)


def _open(name: str, folder: Optional[str]) -> Callable[[Mapping[str, float], int], None]:
    if name == "wandb":
        wandb = _import("wandb", "wandb")
        return lambda metrics, step: wandb.log(dict(metrics), step=step)
    if name == "mlflow":
        mlflow = _import("mlflow", "mlflow")
        return lambda metrics, step: mlflow.log_metrics({to_mlflow_name(name): value for name, value in metrics.items()}, step=step)
    if name == "tensorboard":
        # Without PyTorch, tensorboardX writes the same files.
        module = "torch.utils.tensorboard" if find_spec("torch") else "tensorboardX"
        writer = _import(module, "tensorboardX").SummaryWriter(folder)

        def write(metrics: Mapping[str, float], step: int) -> None:
            for key, value in metrics.items():
                writer.add_scalar(key, value, step)
            writer.flush()

        return write
    raise ValueError(f"no tracker is named {name!r}: expected wandb, tensorboard or mlflow")


def _import(module: str, packages: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"this tracker needs {module}: pip install {packages}", name=module) from error


def _to_scores(views: Iterable[RolloutView]) -> dict[str, float]:
    """The numbers of verifiers; each is a mean over the rollouts that have it."""
    parts: dict[str, list[float]] = {}
    for view in views:
        for name, value in ({} if view.result is None or view.reward is None else view.result.score).items():
            if isinstance(value, (int, float)):
                parts.setdefault(name, []).append(float(value))
    return {f"score/{name}": _mean(values) for name, values in sorted(parts.items())}


def _mean(values: Iterable[float]) -> float:
    given = [float(one) for one in values]
    return sum(given) / len(given)


def _share(views: list[RolloutView], holds: Callable[[RolloutView], bool]) -> float:
    return sum(1 for view in views if holds(view)) / max(1, len(views))
