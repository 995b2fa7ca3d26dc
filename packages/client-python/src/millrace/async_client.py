"""The client for asyncio, with the same calls. Each runs in a thread of the client, and stops when the task that awaits it is cancelled."""

from __future__ import annotations

from typing import Any, AsyncIterator, Iterable, Literal, Mapping, Optional, Sequence, Type

from .async_run import AsyncRun
from .batches.batch import AckReply, BatchState, BatchView, GroupView
from .batches.batches import Batches
from .batches.request import BatchRequest
from .client import Client
from .evaluations.evaluation import EvaluationState, EvaluationTask, EvaluationView
from .evaluations.evaluations import Evaluations
from .evaluations.request import EvaluationRequest
from .rollouts.request import Sampling
from .rollouts.rollout import Accepted, CancelOutcome, Forks, RolloutState, RolloutView, SavedTurn
from .rollouts.submit import RolloutRequests
from .service.backends import Backends
from .rollouts.gateways import Gateway, Gateways
from .service.policy import PauseMode, Policy, PolicyView
from .service.machines import MachineView, WorkerSettings
from .service.status import BackendView, Dialect, Event, LogprobsMode, ServiceStatus
from .service.trainer import StoredSample, Trainer, TrainerRun, TrainerSample, TrainerStepView
from .trajectories.trajectory import Trajectory


class AsyncClient:
    def __init__(
        self, url: Optional[str] = None, api_key: Optional[str] = None, *, timeout_s: float = 30.0, threads: int = 64
    ) -> None:
        """At most `threads` calls run at the same time. To await many rollouts use `results`, which takes one of them."""
        self._client = Client(url, api_key, timeout_s=timeout_s)
        self._threads = threads
        self._run = AsyncRun(threads)
        self.backends = AsyncBackends(self._client.backends, self._run)
        self.policy = AsyncPolicy(self._client.policy, self._run)
        self.gateways = AsyncGateways(self._client.gateways, self._run)
        self.trainer = AsyncTrainer(self._client.trainer, self._run)
        self.batches = AsyncBatches(self._client.batches, self._run)
        self.evaluations = AsyncEvaluations(self._client.evaluations, self._run)

    def __reduce__(self) -> tuple[Any, ...]:
        """As of Client; the copy belongs to the event loop that uses it."""
        _, (_, url, key, timeout_s) = self._client.__reduce__()
        return _reopen, (type(self), url, key, timeout_s, self._threads)

    async def submit(self, rollouts: RolloutRequests) -> Sequence[Accepted]:
        return await self._run.call(lambda stop: self._client.submit(rollouts, stop=stop))

    async def get(self, id: str) -> RolloutView:
        return await self._run.call(lambda stop: self._client.get(id, stop=stop))

    async def wait(self, id: str) -> RolloutView:
        return await self._run.call(lambda stop: self._client.wait(id, stop=stop))

    def list(
        self, *, state: Optional[RolloutState] = None, group: Optional[str] = None, scenario: Optional[str] = None,
        prefix: Optional[str] = None,
    ) -> AsyncIterator[RolloutView]:
        return self._run.iterate(
            lambda stop: self._client.list(state=state, group=group, scenario=scenario, prefix=prefix, stop=stop)
        )

    def results(self, ids: Iterable[str], *, after: Optional[int] = None) -> AsyncIterator[RolloutView]:
        return self._run.iterate(lambda stop: self._client.results(ids, after=after, stop=stop))

    async def trajectory(self, id: str, *, form: Literal["binary", "json"] = "binary", numpy: bool = False) -> Trajectory:
        return await self._run.call(lambda stop: self._client.trajectory(id, form=form, numpy=numpy, stop=stop))

    async def cancel(self, id: str) -> CancelOutcome:
        return await self._run.call(lambda stop: self._client.cancel(id, stop=stop))

    async def retry(self, id: str) -> RolloutView:
        return await self._run.call(lambda stop: self._client.retry(id, stop=stop))

    async def turns(self, id: str) -> tuple[SavedTurn, ...]:
        return await self._run.call(lambda stop: self._client.turns(id, stop=stop))

    async def fork(
        self, id: str, n: int = 1, *, turn: Optional[int] = None, sampling: Optional[Sampling] = None, name: Optional[str] = None
    ) -> Forks:
        return await self._run.call(lambda stop: self._client.fork(id, n, turn=turn, sampling=sampling, name=name, stop=stop))

    def events(self, *, after: Optional[int] = None) -> AsyncIterator[Event]:
        return self._run.iterate(lambda stop: self._client.events(after=after, stop=stop))

    async def status(self) -> ServiceStatus:
        return await self._run.call(lambda stop: self._client.status(stop=stop))

    async def machines(self) -> tuple[MachineView, ...]:
        return await self._run.call(lambda stop: self._client.machines(stop=stop))

    async def worker_settings(self) -> WorkerSettings:
        return await self._run.call(lambda stop: self._client.worker_settings(stop=stop))

    async def close(self) -> None:
        self._client.close()
        self._run.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _reopen(kind: Type[AsyncClient], url: str, key: Optional[str], timeout_s: float, threads: int) -> AsyncClient:
    return kind(url, key, timeout_s=timeout_s, threads=threads)


class AsyncBackends:
    def __init__(self, backends: Backends, run: AsyncRun) -> None:
        self._backends = backends
        self._run = run

    async def join(
        self,
        url: str,
        *,
        id: Optional[str] = None,
        dialect: Optional[Dialect] = None,
        model: Optional[str] = None,
        api_key: Optional[str] = None,
        policy_version: Optional[int] = None,
        logprobs_mode: Optional[LogprobsMode] = None,
    ) -> BackendView:
        options: dict[str, Any] = {"id": id, "dialect": dialect, "model": model, "api_key": api_key}
        options.update(policy_version=policy_version, logprobs_mode=logprobs_mode)
        return await self._run.call(lambda stop: self._backends.join(url, stop=stop, **options))

    async def list(self) -> Sequence[BackendView]:
        return await self._run.call(lambda stop: self._backends.list(stop=stop))

    async def drain(self, id: str) -> BackendView:
        return await self._run.call(lambda stop: self._backends.drain(id, stop=stop))

    async def leave(self, id: str) -> None:
        return await self._run.call(lambda stop: self._backends.leave(id, stop=stop))


class AsyncGateways:
    def __init__(self, gateways: Gateways, run: AsyncRun) -> None:
        self._gateways = gateways
        self._run = run

    async def open(self, request: Optional[Mapping[str, Any]] = None) -> Gateway:
        return await self._run.call(lambda stop: self._gateways.open(request, stop=stop))

    async def wait(self, id: str) -> RolloutView:
        return await self._run.call(lambda stop: self._gateways.wait(id, stop=stop))

    async def reward(self, id: str, reward: float, *, score: Optional[Mapping[str, Any]] = None) -> RolloutView:
        return await self._run.call(lambda stop: self._gateways.reward(id, reward, score=score, stop=stop))

    async def discard(self, id: str, reason: str) -> RolloutView:
        return await self._run.call(lambda stop: self._gateways.discard(id, reason, stop=stop))


class AsyncTrainer:
    def __init__(self, trainer: Trainer, run: AsyncRun) -> None:
        self._trainer = trainer
        self._run = run

    async def post(
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
    ) -> TrainerStepView:
        options: dict[str, Any] = {"run": run, "policy_version": policy_version, "loss": loss, "kl": kl}
        options.update(entropy=entropy, clip_share=clip_share, metrics=metrics, samples=samples)
        return await self._run.call(lambda stop: self._trainer.post(step, stop=stop, **options))

    def steps(self, run: Optional[str] = None, *, after: Optional[int] = None) -> AsyncIterator[TrainerStepView]:
        return self._run.iterate(lambda stop: self._trainer.steps(run, after=after, stop=stop))

    async def runs(self) -> tuple[TrainerRun, ...]:
        return await self._run.call(lambda stop: self._trainer.runs(stop=stop))

    async def samples(self, rollout_id: str) -> tuple[StoredSample, ...]:
        return await self._run.call(lambda stop: self._trainer.samples(rollout_id, stop=stop))


class AsyncPolicy:
    def __init__(self, policy: Policy, run: AsyncRun) -> None:
        self._policy = policy
        self._run = run

    async def get(self) -> PolicyView:
        return await self._run.call(lambda stop: self._policy.get(stop=stop))

    async def pause(self, mode: PauseMode = "wait", *, owner: Optional[str] = None, settle: bool = True) -> PolicyView:
        return await self._run.call(lambda stop: self._policy.pause(mode, owner=owner, settle=settle, stop=stop))

    async def resume(
        self,
        policy_version: Optional[int] = None,
        *,
        caches_flushed: bool = True,
        salt_caches: bool = True,
        allow_lower: bool = False,
        adapter: Optional[str] = None,
        base_model: bool = False,
        owner: Optional[str] = None,
        force: bool = False,
    ) -> PolicyView:
        return await self._run.call(
            lambda stop: self._policy.resume(
                policy_version,
                caches_flushed=caches_flushed,
                salt_caches=salt_caches,
                allow_lower=allow_lower,
                adapter=adapter,
                base_model=base_model,
                owner=owner,
                force=force,
                stop=stop,
            )
        )


class AsyncBatches:
    def __init__(self, batches: Batches, run: AsyncRun) -> None:
        self._batches = batches
        self._run = run

    async def create(self, batch: BatchRequest) -> BatchView:
        return await self._run.call(lambda stop: self._batches.create(batch, stop=stop))

    def list(self, *, state: Optional[BatchState] = None, series: Optional[str] = None) -> AsyncIterator[BatchView]:
        return self._run.iterate(lambda stop: self._batches.list(state=state, series=series, stop=stop))

    async def get(self, id: str) -> BatchView:
        return await self._run.call(lambda stop: self._batches.get(id, stop=stop))

    async def wait(self, id: str) -> BatchView:
        return await self._run.call(lambda stop: self._batches.wait(id, stop=stop))

    async def append_tasks(self, id: str, tasks: Sequence[Mapping[str, Any]], *, closed: bool = False) -> BatchView:
        return await self._run.call(lambda stop: self._batches.append_tasks(id, tasks, closed=closed, stop=stop))

    def groups(
        self,
        id: str,
        *,
        consumer: Optional[str] = None,
        after: Optional[int] = None,
        trajectories: bool = True,
        numpy: bool = False,
        ack: bool = True,
        limit: int = 16,
    ) -> AsyncIterator[GroupView]:
        options: dict[str, Any] = {"consumer": consumer, "after": after, "trajectories": trajectories}
        options.update(numpy=numpy, ack=ack, limit=limit)
        return self._run.iterate(lambda stop: self._batches.groups(id, stop=stop, **options))

    async def ack(self, id: str, consumer: str, through: int) -> AckReply:
        return await self._run.call(lambda stop: self._batches.ack(id, consumer, through, stop=stop))

    async def resume(self, id: str) -> BatchView:
        return await self._run.call(lambda stop: self._batches.resume(id, stop=stop))

    async def cancel(self, id: str) -> BatchView:
        return await self._run.call(lambda stop: self._batches.cancel(id, stop=stop))


class AsyncEvaluations:
    def __init__(self, evaluations: Evaluations, run: AsyncRun) -> None:
        self._evaluations = evaluations
        self._run = run

    async def create(self, evaluation: EvaluationRequest) -> EvaluationView:
        return await self._run.call(lambda stop: self._evaluations.create(evaluation, stop=stop))

    async def get(self, id: str) -> EvaluationView:
        return await self._run.call(lambda stop: self._evaluations.get(id, stop=stop))

    async def wait(self, id: str) -> EvaluationView:
        return await self._run.call(lambda stop: self._evaluations.wait(id, stop=stop))

    def list(self, *, state: Optional[EvaluationState] = None) -> AsyncIterator[EvaluationView]:
        return self._run.iterate(lambda stop: self._evaluations.list(state=state, stop=stop))

    def tasks(self, id: str) -> AsyncIterator[EvaluationTask]:
        return self._run.iterate(lambda stop: self._evaluations.tasks(id, stop=stop))

    async def retry(self, id: str) -> EvaluationView:
        return await self._run.call(lambda stop: self._evaluations.retry(id, stop=stop))

    async def cancel(self, id: str) -> EvaluationView:
        return await self._run.call(lambda stop: self._evaluations.cancel(id, stop=stop))
