"""Group-relative advantages that count every rollout once, however many rows it has: a rollout with three branches has one reward,
and a trainer that normalises over rows would weigh it three times. Rollouts without a reward do not count."""

from __future__ import annotations

import math
from typing import Literal, Sequence

from millrace.dapo import DDOF, TOLERANCE, check_rewards

from .train_rows import TrainRow

#: What deviations are divided by: `group` as in GRPO, `none` as in Dr. GRPO.
Scale = Literal["group", "none"]


def rollout_advantages(
    rows: Sequence[TrainRow], *, scale: Scale = "group", ddof: int = DDOF, epsilon: float = 0.0
) -> list[float]:
    """One number for each row: (reward - mean) / (standard deviation + epsilon) over the rollouts of its group. Placeholders, rows of a
    group with one scored rollout, and rows of a group whose rewards are equal get 0. The default of `ddof` is that of
    `millrace.dapo.group_advantages`; 1 divides the variance by n - 1, as torch does."""
    members: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.reward is not None:
            members.setdefault(row.group, {})[row.rollout.id] = row.reward
    statistics = {group: measure_group(list(rewards.values()), ddof) for group, rewards in members.items()}
    found: list[float] = []
    for row in rows:
        mean, deviation = statistics.get(row.group, (0.0, 0.0))
        if row.placeholder or row.reward is None or deviation == 0.0:
            found.append(0.0)
        else:
            found.append((row.reward - mean) / (deviation + epsilon) if scale == "group" else row.reward - mean)
    return found


def fill_rewards(rows: Sequence[TrainRow]) -> list[float]:
    """For trainers that need a number for every row: one without a reward has the mean of its group, so that the baseline of its siblings
    stays as it is. Only the deviation is then computed over more members than were scored."""
    scored: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.reward is not None:
            scored.setdefault(row.group, {})[row.rollout.id] = row.reward
    means = {group: math.fsum(check_rewards(list(found.values()))) / len(found) for group, found in scored.items()}
    return [means.get(row.group, 0.0) if row.reward is None else row.reward for row in rows]


def measure_group(rewards: Sequence[float], ddof: int) -> tuple[float, float]:
    """The mean and the standard deviation, which is 0 if all rewards are equal within rounding."""
    check_rewards(rewards)
    mean = math.fsum(rewards) / len(rewards)
    if len(rewards) < 2 or max(rewards) - min(rewards) <= TOLERANCE:
        return mean, 0.0
    return mean, math.sqrt(math.fsum((one - mean) ** 2 for one in rewards) / (len(rewards) - ddof))
