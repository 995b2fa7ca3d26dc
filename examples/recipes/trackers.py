"""Numbers of rollouts for W&B, MLflow or TensorBoard, or for any function of yours: `python3 trackers.py wandb mlflow`. The client and the
service know nothing of trackers: the loop calls `log` with numbers and a step."""

from __future__ import annotations

import sys
from typing import Callable, Mapping

from millrace import Client
from millrace_trainers import Sampled
from millrace_trainers.feedback import Tracker, to_metrics

Log = Callable[[Mapping[str, float], int], None]
TASKS = [{"question": "1 + 1 = ?", "answer": "2"}, {"question": "2 + 2 = ?", "answer": "4"}]


def train(log: Log, steps: int = 3) -> None:
    with Client() as client:
        for step in range(steps):
            batch = client.batches.create({"scenario": "math", "tasks": TASKS, "group_size": 4, "target": 2})
            sampled = []
            for group in client.batches.groups(batch.id):
                sampled += [Sampled(*one) for one in zip(group.rollouts, group.trajectories or ())]
            view = client.batches.get(batch.id)
            log({**to_metrics(sampled), "batch/tasks_begun": float(view.tasks.begun)}, step)


def show(metrics: Mapping[str, float], step: int) -> None:
    """A tracker of your own is one function."""
    print(step, metrics["rollout/reward/mean"], metrics["rollout/tokens/sampled_mean"])


if __name__ == "__main__":
    names = sys.argv[1:]
    train(Tracker(*names, folder="runs").log if names else show)  # type: ignore[arg-type]
