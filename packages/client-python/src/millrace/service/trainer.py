"""What a trainer posts back after an optimizer step: its numbers, and what it computed for the tokens of some rollouts. The service
compares recomputed with recorded logprobs, and shows all of it in its dashboard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Iterator, Mapping, Optional, Protocol, Sequence, TypedDict

from ..stop import Stop
from ..wire.transport import Call, Transport, to_path

_PAGE = 1000


class _RequiredOfSample(TypedDict):
    rollout_id: str


class TrainerSample(_RequiredOfSample, total=False):
    """Lists have one number for each sampled token of the branch, in order; `trainer_sample` makes them from a row."""

    branch: int
    advantage: float
    advantages: Sequence[float]
    logprobs: Sequence[float]
    kl: Sequence[float]


@dataclass(frozen=True)
class LogprobMismatch:
    backend: str
    policy_version: Optional[int]
    tokens: int
    #: The mean of |recomputed - recorded|, in nats.
    mean_abs: float
    most_abs: float
    kl: float


@dataclass(frozen=True)
class TrainerStepView:
    run: str
    step: int
    at: str
    policy_version: Optional[int]
    loss: Optional[float]
    kl: Optional[float]
    entropy: Optional[float]
    clip_share: Optional[float]
    metrics: Mapping[str, float]
    samples: int
    #: Samples whose trajectory the service does not have any more.
    unknown_samples: int
    mismatch: tuple[LogprobMismatch, ...]
    #: Says so if the mismatch grew, or is much larger on one backend.
    alarm: Optional[str]


@dataclass(frozen=True)
class TrainerRun:
    run: str
    steps: int
    newest_at: str


@dataclass(frozen=True)
class TrainerStepList:
    steps: tuple[TrainerStepView, ...]
    next: Optional[int]
    runs: tuple[TrainerRun, ...]


@dataclass(frozen=True)
class StoredSample:
    rollout_id: str
    branch: int
    run: str
    step: int
    at: str
    policy_version: Optional[int]
    advantage: Optional[float] = None
    advantages: Optional[tuple[float, ...]] = None
    logprobs: Optional[tuple[float, ...]] = None
    kl: Optional[tuple[float, ...]] = None


@dataclass(frozen=True)
class TrainerSampleList:
    samples: tuple[StoredSample, ...]


class MaskedRow(Protocol):
    """What `trainer_sample` needs of a row of `millrace.export`."""

    @property
    def rollout(self) -> Any: ...
    @property
    def branch(self) -> int: ...
    @property
    def response_mask(self) -> Sequence[int]: ...


def trainer_sample(
    row: MaskedRow,
    *,
    advantage: Optional[float] = None,
    advantages: Optional[Iterable[float]] = None,
    logprobs: Optional[Iterable[float]] = None,
    kl: Optional[Iterable[float]] = None,
) -> TrainerSample:
    """A sample from a row of `to_rows`. Lists are as long as its response, as trainers have them; what the mask leaves out is dropped."""
    sample: TrainerSample = {"rollout_id": row.rollout.id, "branch": row.branch}
    if advantage is not None:
        sample["advantage"] = float(advantage)
    if advantages is not None:
        sample["advantages"] = _masked(row, "advantages", advantages)
    if logprobs is not None:
        sample["logprobs"] = _masked(row, "logprobs", logprobs)
    if kl is not None:
        sample["kl"] = _masked(row, "kl", kl)
    return sample


def _masked(row: MaskedRow, name: str, values: Iterable[float]) -> list[float]:
    given = [float(one) for one in values]
    if len(given) != len(row.response_mask):
        raise ValueError(f"{name} of rollout {row.rollout.id}: {len(given)} numbers for {len(row.response_mask)} tokens of the response")
    return [value for value, mask in zip(given, row.response_mask) if mask]


class Trainer:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def post(
        self,
        step: int,
        *,
        run: str = "default",
        policy_version: Optional[int] = None,
        loss: Optional[float] = None,
        kl: Optional[float] = None,
        entropy: Optional[float] = None,
        clip_share: Optional[float] = None,
        metrics: Optional[Mapping[str, float]] = None,
        samples: Sequence[TrainerSample] = (),
        stop: Optional[Stop] = None,
    ) -> TrainerStepView:
        """Posts the numbers of a step. The reply says how far recomputed and recorded logprobs of the samples are apart. Posting a step
        again replaces it."""
        optional = {"policy_version": policy_version, "loss": loss, "kl": kl, "entropy": entropy, "clip_share": clip_share}
        body: dict[str, Any] = {"run": run, "step": step, **{name: value for name, value in optional.items() if value is not None}}
        if metrics:
            body["metrics"] = dict(metrics)
        if samples:
            body["samples"] = list(samples)
        return self._transport.json(Call("POST", "/v1/trainer/steps", body=body, stop=stop), TrainerStepView)

    def steps(
        self, run: Optional[str] = None, *, after: Optional[int] = None, stop: Optional[Stop] = None
    ) -> Iterator[TrainerStepView]:
        """The steps of a run, oldest first: those after a step if it is given. By default of the run with the newest step."""
        while True:
            page = self._page(run, after, stop)
            yield from page.steps
            after = page.next
            if after is None or not page.steps:
                return
            run = page.steps[-1].run

    def runs(self, *, stop: Optional[Stop] = None) -> tuple[TrainerRun, ...]:
        """The training runs, the one with the newest step first."""
        return self._page(None, None, stop).runs

    def samples(self, rollout_id: str, *, stop: Optional[Stop] = None) -> tuple[StoredSample, ...]:
        """What trainers computed for the tokens of a rollout, the newest step first."""
        path = to_path("/v1/rollouts/{id}/trainer", id=rollout_id)
        return self._transport.json(Call("GET", path, stop=stop), TrainerSampleList).samples

    def _page(self, run: Optional[str], after: Optional[int], stop: Optional[Stop]) -> TrainerStepList:
        query = {"run": run, "after": after, "limit": _PAGE}
        return self._transport.json(Call("GET", "/v1/trainer/steps", query, stop=stop), TrainerStepList)
