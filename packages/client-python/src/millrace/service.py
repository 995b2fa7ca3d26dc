"""The service around the rollouts: backends, workers, its status, and the events of its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional


@dataclass(frozen=True)
class BackendError:
    message: str
    at: str


@dataclass(frozen=True)
class BackendView:
    id: str
    url: str
    dialect: str
    model: Optional[str]
    policy_version: int
    logprobs_mode: str
    state: str
    health: str
    last_error: Optional[BackendError]
    in_flight: int
    calls: int
    tokens: int


@dataclass(frozen=True)
class BackendList:
    backends: tuple[BackendView, ...]


@dataclass(frozen=True)
class LeaveReply:
    id: str


@dataclass(frozen=True)
class StageReport:
    active: int
    waiting: int
    slots: int


@dataclass(frozen=True)
class LoopLag:
    p50: float
    p99: float
    max: float


@dataclass(frozen=True)
class WorkerReport:
    stages: Mapping[str, StageReport]
    held: int
    backends: Mapping[str, int]
    turns: int
    sampled_tokens: int
    loop_lag_ms: LoopLag
    rss_bytes: int
    calls: Optional[Mapping[str, int]] = None
    tokens_per_s: Optional[float] = None


@dataclass(frozen=True)
class WorkerView:
    id: str
    host: str
    pid: int
    started_at: str
    alive: bool
    report: Optional[WorkerReport]


@dataclass(frozen=True)
class ServiceStatus:
    rollouts: Mapping[str, int]
    workers: tuple[WorkerView, ...]
    backends: tuple[BackendView, ...]
    tokens_per_s: float
    last_event_id: int
    loop_lag_ms: LoopLag
    rss_bytes: int


@dataclass(frozen=True)
class Event:
    """`kind` may be one that this client does not know; which data comes with it is the protocol's."""

    id: int
    at: str
    kind: str
    data: Mapping[str, Any]
    rollout_id: Optional[str] = None
    group: Optional[str] = None
    worker_id: Optional[str] = None
    backend_id: Optional[str] = None
