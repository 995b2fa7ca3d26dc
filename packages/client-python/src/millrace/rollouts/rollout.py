"""A rollout as the service tells it: its state and, once it has ended, its result. `reward` is a number only if a verifier gave one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional

TERMINAL_STATES = ("done", "failed", "cancelled")


@dataclass(frozen=True)
class Accepted:
    id: str
    state: str
    created: bool


@dataclass(frozen=True)
class SubmitReply:
    rollouts: tuple[Accepted, ...]


@dataclass(frozen=True)
class CancelReply:
    id: str
    cancel: str


@dataclass(frozen=True)
class Failure:
    code: str
    message: str
    blame: str
    retryable: bool
    stage: Optional[str]
    attempt: int


@dataclass(frozen=True)
class Timings:
    queued_ms: float
    init_ms: float
    ready_ms: float
    run_ms: float
    evaluate_wait_ms: float
    evaluate_ms: float
    model_ms: float
    tool_ms: float


@dataclass(frozen=True)
class TokenCounts:
    prompt: int
    sampled: int
    observation: int


@dataclass(frozen=True)
class PolicySpan:
    """The first and the last policy version that sampled."""

    first: int
    last: int


@dataclass(frozen=True)
class RolloutResult:
    reward: Optional[float]
    score: Mapping[str, Any]
    stop_reason: Optional[str]
    turns: int
    tokens: TokenCounts
    malformed_calls: int
    policy_versions: Optional[PolicySpan]
    backends: tuple[str, ...]
    timings: Timings


@dataclass(frozen=True)
class RolloutView:
    id: str
    scenario: str
    group: Optional[str]
    state: str
    attempt: int
    retries: int
    losses: int
    worker: Optional[str]
    reward: Optional[float]
    result: Optional[RolloutResult]
    failure: Optional[Failure]
    failures: tuple[Failure, ...]
    created_at: str
    ended_at: Optional[str]
    metadata: Optional[Mapping[str, Any]]

    @property
    def ended(self) -> bool:
        return self.state in TERMINAL_STATES


@dataclass(frozen=True)
class RolloutList:
    rollouts: tuple[RolloutView, ...]
    next: Optional[str]
