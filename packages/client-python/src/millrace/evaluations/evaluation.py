"""An evaluation as the service reports it: its progress, its numbers so far or final ones, and its tasks with their samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Mapping, Optional

from ..rollouts.rollout import Blame, PolicySpan, RolloutState, StopReason

#: `done`: every sample has ended, with or without a reward.
EvaluationState = Literal["open", "done", "cancelled"]


@dataclass(frozen=True)
class Estimate:
    """A number with its error. All are None while there is nothing to compute them from."""

    #: Over the samples with a reward.
    value: Optional[float]
    #: Clustered by task, since the samples of one task are not independent. None with fewer than two tasks.
    standard_error: Optional[float]
    #: The same number if every sample that ended without a reward had the reward 0 and was not correct.
    lower: Optional[float]
    #: How many tasks have enough samples with a reward to count.
    tasks: int


@dataclass(frozen=True)
class PassEstimate:
    """The chance that at least one (pass@k) or all (pass^k) of k samples of a task are correct. The rest is as in `Estimate`."""

    k: int
    value: Optional[float]
    standard_error: Optional[float]
    lower: Optional[float]
    tasks: int


@dataclass(frozen=True)
class EvaluationFailure:
    blame: Blame
    code: str
    #: How many samples ended with it.
    samples: int
    #: How many of them have a reward, the lowest of their task, because the agent caused the failure.
    scored: int


@dataclass(frozen=True)
class SampleCounts:
    total: int
    #: Those that are queued, run or have ended.
    begun: int
    ended: int
    #: Those that ended with a reward.
    scored: int
    #: Those that ended without a reward: they failed, or were cancelled.
    unscored: int
    correct: int


@dataclass(frozen=True)
class EvaluationView:
    """An evaluation: its state, its samples and its numbers."""

    id: str
    state: EvaluationState
    scenario: str
    tasks: int
    n: int
    samples: SampleCounts
    #: The mean reward.
    mean: Estimate
    #: pass@k, for the powers of two up to `n`.
    pass_at: tuple[PassEstimate, ...]
    #: pass^k, for the same k.
    pass_all: tuple[PassEstimate, ...]
    #: By blame and code, the most frequent first.
    failures: tuple[EvaluationFailure, ...]
    stop_reasons: Mapping[str, int]
    turns: int
    sampled_tokens: int
    #: More than one version means that the weights changed meanwhile.
    policy_versions: Optional[PolicySpan]
    sampling: Mapping[str, Any]
    limits: Mapping[str, Any]
    #: As requested; None for the highest reward of each task.
    correct_at: Optional[float]
    created_at: str
    ended_at: Optional[str]
    metadata: Optional[Mapping[str, Any]]
    #: Why no live machine can take its samples; None if one can, or if it has ended.
    waiting: Optional[str] = None

    @property
    def ended(self) -> bool:
        return self.state != "open"


@dataclass(frozen=True)
class EvaluationList:
    evaluations: tuple[EvaluationView, ...]
    next: Optional[str]


@dataclass(frozen=True)
class SampleFailure:
    blame: Blame
    code: str
    message: str


@dataclass(frozen=True)
class EvaluationSample:
    #: The id of its rollout.
    rollout: str
    state: RolloutState
    reward: Optional[float]
    stop_reason: Optional[StopReason]
    failure: Optional[SampleFailure]


@dataclass(frozen=True)
class EvaluationTask:
    """One task with its samples so far."""

    #: Its position in the request.
    index: int
    task: Mapping[str, Any]
    correct_at: float
    scored: int
    correct: int
    mean: Optional[float]
    samples: tuple[EvaluationSample, ...]


@dataclass(frozen=True)
class EvaluationTaskPage:
    tasks: tuple[EvaluationTask, ...]
    next: Optional[int]
