"""The formulas of DAPO (arXiv 2503.14476): what a trainer computes from groups of rewards and rows of logprobs. Pure reference
functions; given numpy arrays they return arrays, otherwise lists."""

from __future__ import annotations

import math
import sys
from typing import Any, Iterable, Optional, Sequence, TypeVar

T = TypeVar("T")


#: Rewards that differ by no more than this are equal, as for the service's rule `rewards-differ`.
TOLERANCE = 1e-6


#: What the number of siblings is reduced by in the variance of a group, by default and in every function with this parameter.
DDOF = 0


def group_advantages(rewards: Sequence[float], *, ddof: int = DDOF, tolerance: float = TOLERANCE) -> Any:
    """(reward - mean) / standard deviation over the group; all tokens of a sibling share its advantage. If all rewards are
    equal within `tolerance`, every advantage is zero: rounding must not become a signal. `ddof=1` divides the variance by n - 1,
    as torch does."""
    count = len(rewards)
    if count == 0:
        raise ValueError("a group without rewards has no advantages")
    values = check_rewards(rewards)
    mean = math.fsum(values) / count
    deviations = [one - mean for one in values]
    if not is_informative(values, tolerance=tolerance):
        return _like(rewards, [0.0] * count)
    deviation = math.sqrt(math.fsum(one * one for one in deviations) / (count - ddof))
    return _like(rewards, [one / deviation for one in deviations])


def is_informative(rewards: Sequence[Optional[float]], *, tolerance: float = TOLERANCE) -> bool:
    """Whether two rewards of the group differ by more than `tolerance`. Siblings without a reward do not count."""
    scored = check_rewards([one for one in rewards if one is not None])
    return len(scored) > 1 and max(scored) - min(scored) > tolerance


def check_rewards(rewards: Sequence[float]) -> list[float]:
    """Plain floats. One that is not a finite number is an error: it would make every advantage of its group nan, or quietly 0."""
    values = [float(one) for one in rewards]
    for index, value in enumerate(values):
        if not math.isfinite(value):
            raise ValueError(f"reward {index} of the group is {value}: leave out a sibling without a reward, or penalise it with a number")
    return values


def keep_informative(groups: Iterable[tuple[T, Sequence[Optional[float]]]]) -> list[T]:
    """The filter of dynamic sampling, over pairs of (group, rewards)."""
    return [group for group, rewards in groups if is_informative(rewards)]


def clip_higher(
    logprobs: Sequence[float],
    old_logprobs: Sequence[float],
    advantage: float,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
) -> Any:
    """The objective of each token: min(r A, clip(r, 1 - low, 1 + high) A) with r = exp(logprob - old logprob). The upper bound
    is wider, so that unlikely tokens can gain probability."""
    _check_lengths(logprobs=logprobs, old_logprobs=old_logprobs)
    numpy = _numpy_of(logprobs, old_logprobs)
    if numpy is not None:
        ratios = numpy.exp(numpy.asarray(logprobs, "float64") - numpy.asarray(old_logprobs, "float64"))
        return numpy.minimum(ratios * advantage, numpy.clip(ratios, 1 - clip_low, 1 + clip_high) * advantage)
    objectives = []
    for new, old in zip(logprobs, old_logprobs):
        ratio = math.exp(new - old)
        clipped = min(max(ratio, 1 - clip_low), 1 + clip_high)
        objectives.append(min(ratio * advantage, clipped * advantage))
    return objectives


def token_level_loss(objectives: Sequence[Sequence[float]], masks: Sequence[Sequence[int]]) -> float:
    """Minus the mean objective over all trainable tokens of the batch: every token has the same weight, not every response."""
    _check_lengths(objectives=objectives, masks=masks)
    total, count = 0.0, 0
    for row, mask in zip(objectives, masks):
        _check_lengths(objectives=row, mask=mask)
        total += math.fsum(float(one) for one, trainable in zip(row, mask) if trainable)
        count += sum(1 for trainable in mask if trainable)
    if count == 0:
        raise ValueError("no token of the batch is trainable")
    return -total / count


def overlong_penalty(length: int, *, max_length: int, cache: int) -> float:
    """Soft overlong punishment, added to the reward: 0 up to max_length - cache, falling to -1 at max_length and beyond."""
    if not 0 < cache <= max_length:
        raise ValueError(f"cache must be between 1 and max_length ({max_length}), not {cache}")
    allowed = max_length - cache
    if length <= allowed:
        return 0.0
    return (allowed - length) / cache if length <= max_length else -1.0


def _check_lengths(**sequences: Sequence[Any]) -> None:
    if len({len(one) for one in sequences.values()}) > 1:
        raise ValueError(", ".join(f"{len(one)} {name}" for name, one in sequences.items()) + ": the lengths must match")


def _numpy_of(*values: Any) -> Any:
    """numpy, if one of these is a numpy array. Never imports numpy itself."""
    numpy = sys.modules.get("numpy")
    return numpy if numpy is not None and any(isinstance(one, numpy.ndarray) for one in values) else None


def _like(given: Any, values: list[float]) -> Any:
    numpy = _numpy_of(given)
    return values if numpy is None else numpy.asarray(values)
