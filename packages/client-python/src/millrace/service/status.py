"""What the service reports about itself: backends, workers, its status, and the events of its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Mapping, Optional

from .machines import MachineReport, MachineView
from .policy import PolicyView

#: vllm: /inference/v1/generate, otherwise /v1/completions. vllm-completions: /v1/completions. sglang: /generate. llamacpp: /completion.
#: prorl: /generate with prompt_ids. chat: /v1/chat/completions.
Dialect = Literal["vllm", "vllm-completions", "sglang", "llamacpp", "prorl", "chat"]
#: `processed` logprobs are those of the sampling distribution; `raw` ones are from before temperature and penalties.
LogprobsMode = Literal["raw", "processed", "unknown"]


@dataclass(frozen=True)
class BackendError:
    message: str
    at: str


@dataclass(frozen=True)
class BackendProbe:
    engine: Optional[str]
    version: Optional[str]
    model: Optional[str]
    #: How many tokens the prompt and the reply may have together.
    context_length: Optional[int]
    #: Whether it encodes text as the service does. A backend with a different tokenizer is broken.
    tokenizer: Literal["same", "different", "unchecked"]
    #: The text and the ids that differ, or why it was not checked.
    tokenizer_reason: Optional[str]
    at: str
    #: Several servers answer at its address in turns, as behind a router. The other facts are those that all share.
    several: bool = False


@dataclass(frozen=True)
class CallProgress:
    """How the running calls on a backend get on."""

    #: How long the oldest call has run.
    oldest_call_ms: int
    #: Since a token arrived in one of the calls; None if none has a token yet.
    last_token_ms: Optional[int]
    #: Over the last ten seconds. Some engines send all tokens at the end of a call.
    tokens_per_s: float


@dataclass(frozen=True)
class BackendView:
    id: str
    url: str
    dialect: Dialect
    model: Optional[str]
    policy_version: int
    logprobs_mode: LogprobsMode
    #: How the mode is known, or what to do so that it is.
    logprobs_reason: Optional[str]
    state: Literal["up", "draining"]
    #: Nothing is placed on a broken backend until it passes a health check.
    health: Literal["ok", "broken"]
    last_error: Optional[BackendError]
    #: Rollouts running on it, over all workers.
    in_flight: int
    #: Requests of those rollouts that it is serving or has queued.
    calls: int
    #: Context tokens of those rollouts, as last reported.
    tokens: int
    #: The route that its calls use, and why that is not the first choice of its dialect.
    route: Optional[str]
    route_reason: Optional[str]
    #: What its server said when it was last asked everything.
    probe: Optional[BackendProbe]
    #: In the reply to a join: what was changed in the request.
    note: Optional[str]
    #: Machines that cannot reach it, by their host names. With `health` ok, other machines use it.
    broken_for: tuple[str, ...] = ()
    #: Counts the servers that have answered at its address: a restart is another server.
    generation: int = 1
    #: How its calls get on; None while there are none.
    call_progress: Optional[CallProgress] = None
    #: Those rollouts whose next turn waits for room in its KV cache.
    held_for_cache: int = 0


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
    call_progress: Optional[Mapping[str, CallProgress]] = None
    #: Its rollouts that wait for room in the KV cache of each backend.
    held_for_cache: Optional[Mapping[str, int]] = None
    tokens_per_s: Optional[float] = None
    machine: Optional[MachineReport] = None
    #: How long a renewal lasts.
    lease_ms: Optional[int] = None
    #: Where it takes the requests of the gateways that it holds.
    gateway_url: Optional[str] = None
    #: It takes no more rollouts, and leaves when those that it holds have ended.
    draining: Optional[bool] = None


@dataclass(frozen=True)
class WorkerView:
    id: str
    host: str
    pid: int
    started_at: str
    alive: bool
    report: Optional[WorkerReport]


@dataclass(frozen=True)
class OpenBatchView:
    id: str
    series: Optional[str]
    scenario: str
    target: int
    delivered: int
    open_groups: int
    mean_reward: Optional[float]
    created_at: str


@dataclass(frozen=True)
class RecentEnds:
    """Rollouts that ended in the last `seconds`."""

    seconds: int
    ended: int
    failed: int
    rewarded: int
    mean_reward: Optional[float]


@dataclass(frozen=True)
class ClassView:
    """A class of work: what shares the workers fairly with other classes of the same priority."""

    kind: str
    #: The id of the batch or evaluation; of plain submissions, a name for their key.
    name: str
    weight: float
    priority: int
    urgent: bool
    queued: int
    active: int


@dataclass(frozen=True)
class StoreSize:
    """The store's file, its write-ahead log, and what is free on its disk."""

    file_bytes: int
    wal_bytes: int
    free_bytes: int
    #: Inside the file: space of deleted rows, which new rows will use.
    reusable_bytes: Optional[int] = None
    #: Why the store is full and what to do; None while it is not.
    full: Optional[str] = None


@dataclass(frozen=True)
class ServiceStatus:
    """`hints` says what is missing for rollouts to make progress."""

    rollouts: Mapping[str, int]
    workers: tuple[WorkerView, ...]
    backends: tuple[BackendView, ...]
    policy: PolicyView
    batches: tuple[OpenBatchView, ...]
    recent: RecentEnds
    hints: tuple[str, ...]
    tokens_per_s: float
    last_event_id: int
    loop_lag_ms: LoopLag
    rss_bytes: int
    #: Classes with queued or active rollouts, in the order in which they are served.
    classes: tuple[ClassView, ...] = ()
    store: Optional[StoreSize] = None
    #: The machines of these workers, live ones first.
    machines: tuple[MachineView, ...] = ()


@dataclass(frozen=True)
class Event:
    """`kind` may be unknown to this client. The protocol defines which data comes with each kind."""

    id: int
    at: str
    kind: str
    data: Mapping[str, Any]
    rollout_id: Optional[str] = None
    group: Optional[str] = None
    worker_id: Optional[str] = None
    backend_id: Optional[str] = None
