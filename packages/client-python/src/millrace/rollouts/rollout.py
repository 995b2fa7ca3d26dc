"""A rollout as the service reports it: its state and, once it has finished, its result. `reward` is a number only if a verifier
measured one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Mapping, Optional

RolloutState = Literal["queued", "init", "ready", "run", "evaluate", "done", "failed", "cancelled"]
Stage = Literal["init", "run", "evaluate"]
StopReason = Literal[
    "completed", "tool_stopped", "max_turns", "max_tokens", "context_overflow", "parse_error", "rollout_timeout", "loop"
]
Blame = Literal["caller", "policy", "task", "sandbox", "backend", "verifier", "service"]
#: `cancelled`: it is over now. `asked`: a worker is running it and will stop it. `ended`: it had finished before.
CancelOutcome = Literal["cancelled", "asked", "ended"]

TERMINAL_STATES = ("done", "failed", "cancelled")


@dataclass(frozen=True)
class Accepted:
    """A submitted rollout. `created` is False if the service already had a rollout with this id."""

    id: str
    state: RolloutState
    created: bool


@dataclass(frozen=True)
class SubmitReply:
    rollouts: tuple[Accepted, ...]


@dataclass(frozen=True)
class Forks:
    """Rollouts that share everything up to `turn` with the one that was forked."""

    rollouts: tuple[Accepted, ...]
    turn: int


@dataclass(frozen=True)
class SavedTurn:
    turn: int
    #: The attempt that sampled it; 0 if the rollout is a fork and shares it.
    attempt: int
    #: Whether the rollout can be forked after it.
    kept: bool
    #: The name of its checkpoint in the run folder of the machine that ran it; None without a sandbox.
    checkpoint: Optional[str]
    #: Whose checkpoint it is: of a shared turn, that of the rollout that was forked.
    rollout: str


@dataclass(frozen=True)
class SavedTurnList:
    turns: tuple[SavedTurn, ...]


@dataclass(frozen=True)
class ForkOrigin:
    """A fork shares everything up to this turn of another rollout."""

    rollout: str
    turn: int


@dataclass(frozen=True)
class CancelReply:
    id: str
    cancel: CancelOutcome


@dataclass(frozen=True)
class Failure:
    """Why an attempt failed, and what is to blame."""

    code: str
    message: str
    blame: Blame
    retryable: bool
    stage: Optional[Stage]
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
    #: Waits for room in the KV cache of its backend. They are not part of `run_ms`.
    cache_wait_ms: float = 0


@dataclass(frozen=True)
class TokenCounts:
    prompt: int
    sampled: int
    observation: int


@dataclass(frozen=True)
class PolicySpan:
    """The lowest and the highest policy version that sampled."""

    first: int
    last: int


@dataclass(frozen=True)
class Continued:
    """From where the last attempt went on."""

    #: How often an attempt went on from turns of an earlier one.
    times: int
    #: The turn after which the last attempt went on.
    turn: int
    #: The turns that were saved after it, without all of their state: they were sampled again.
    turns_again: int


@dataclass(frozen=True)
class RolloutResult:
    reward: Optional[float]
    #: What the verifier reported in addition to the reward.
    score: Mapping[str, Any]
    stop_reason: Optional[StopReason]
    turns: int
    tokens: TokenCounts
    malformed_calls: int
    policy_versions: Optional[PolicySpan]
    backends: tuple[str, ...]
    timings: Timings
    #: Of its OpenTelemetry trace; None if it was not traced.
    trace_id: Optional[str] = None
    #: None if its last attempt began at the opening.
    continued: Optional[Continued] = None


@dataclass(frozen=True)
class RolloutView:
    id: str
    scenario: str
    group: Optional[str]
    state: RolloutState
    #: How many times a worker has started it.
    attempt: int
    #: How many times a retryable failure sent it back to the queue.
    retries: int
    #: How many times its worker died. One death for each ten turns that are saved is not counted.
    losses: int
    worker: Optional[str]
    reward: Optional[float]
    result: Optional[RolloutResult]
    failure: Optional[Failure]
    #: Failures of earlier attempts.
    failures: tuple[Failure, ...]
    created_at: str
    ended_at: Optional[str]
    metadata: Optional[Mapping[str, Any]]
    #: Why no live machine can take it, while it is queued.
    waiting: Optional[str] = None
    #: Of a fork: where it began. Its trajectory begins with what it shares, which is not sampled there.
    fork: Optional[ForkOrigin] = None

    @property
    def ended(self) -> bool:
        return self.state in TERMINAL_STATES


@dataclass(frozen=True)
class RolloutList:
    rollouts: tuple[RolloutView, ...]
    next: Optional[str]
