"""Which tasks to sample next: those whose rewards still differ within a group. A task that is always solved, or never, teaches nothing now;
it comes back now and then, because the policy changes."""

from __future__ import annotations

import json
import random
from typing import Any, Iterable, Mapping, Optional, Sequence

from millrace.dapo import check_rewards

Task = Mapping[str, Any]


class Curriculum:
    """`add` what a group of siblings earned, and `choose` the next tasks. A task that was never sampled comes first. `memory` is the share
    of the old estimate that a new group leaves; `floor` the weight of a task without a signal, against 1 for one that is solved half of
    the time. Rewards are taken as between `low` and `high`."""

    def __init__(
        self, tasks: Iterable[Task], *, memory: float = 0.5, floor: float = 0.05, low: float = 0.0, high: float = 1.0, seed: int = 0
    ) -> None:
        if not (0 <= memory < 1 and 0 < floor <= 1 and low < high):
            given = f"memory {memory}, floor {floor}, low {low} and high {high}"
            raise ValueError(f"{given}: expected 0 <= memory < 1, 0 < floor <= 1, low < high")
        self._tasks = {_key(task): task for task in tasks}
        if not self._tasks:
            raise ValueError("a curriculum needs at least one task")
        self._means: dict[str, float] = {}
        self._memory, self._floor, self._low, self._high = memory, floor, low, high
        self._random = random.Random(seed)

    def add(self, task: Task, rewards: Sequence[Optional[float]]) -> None:
        """Siblings without a reward say nothing about the task."""
        key = _key(task)
        if key not in self._tasks:
            raise ValueError(f"not a task of this curriculum: {key[:200]}")
        scored = check_rewards([one for one in rewards if one is not None])
        if not scored:
            return
        share = (sum(scored) / len(scored) - self._low) / (self._high - self._low)
        new = min(1.0, max(0.0, share))
        self._means[key] = new if key not in self._means else self._memory * self._means[key] + (1 - self._memory) * new

    def weight(self, task: Task) -> float:
        """1 for a task that was never sampled, or is solved half of the time; `floor` for one without a signal."""
        mean = self._means.get(_key(task))
        return 1.0 if mean is None else max(self._floor, 4 * mean * (1 - mean))

    def choose(self, count: int) -> list[Task]:
        """Different tasks, in the order of a draw by weight; all of them if there are fewer."""
        fresh = [key for key in self._tasks if key not in self._means]
        known = [key for key in self._tasks if key in self._means]
        # A draw without replacement: the largest of u ** (1 / weight) win.
        drawn = sorted(known, key=lambda key: self._random.random() ** (1 / self.weight(self._tasks[key])), reverse=True)
        self._random.shuffle(fresh)
        return [self._tasks[key] for key in (fresh + drawn)[:count]]

    def state(self) -> dict[str, float]:
        """What it knows, as JSON, for a checkpoint; `restore` takes it."""
        return dict(self._means)

    def restore(self, state: Mapping[str, float]) -> None:
        self._means = {key: float(value) for key, value in state.items() if key in self._tasks}


def _key(task: Task) -> str:
    return json.dumps(task, sort_keys=True, default=str)
