"""Agent Lightning 0.3. `MillraceAgent` is an agent for its trainer, one rollout per runner process; `StoreRunner` is a runner that takes
any number of rollouts from a LightningStore at the same time. Both write spans that its adapters turn into triplets."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, Mapping, Optional

from millrace.export import to_rows

from ..rollouts import Sampled
from ..serving import RolloutRuns, describe_failure, to_request
from ..turns import to_turns
from ..versions import trainer_imports

with trainer_imports(
    "agent-lightning",
    below="1",
    hint="version 1.0 has a gateway and no store: leave out --store, or pip install 'agentlightning<1' with Python 3.11",
):
    from agentlightning import LitAgent, emit_reward
    from agentlightning.store.base import LightningStore
    from agentlightning.store.client_server import LightningStoreClient
    from agentlightning.types import AttemptedRollout, Span
    from agentlightning.types.tracer import SpanCoreFields, TraceStatus


class UnscoredError(RuntimeError):
    """A rollout has no reward. Agent Lightning counts the attempt as failed, and tries again if it is configured to."""


class MillraceAgent(LitAgent[Any]):
    """`Trainer(…).fit(MillraceAgent(), tasks)`. A task is a line of a task file, or the task itself if `scenario` is given."""

    def __init__(self, scenario: Optional[str] = None, *, url: Optional[str] = None) -> None:
        super().__init__()
        self._scenario = scenario
        self._url = url
        self._runs: Optional[RolloutRuns] = None

    async def rollout_async(self, task: Any, resources: Any, rollout: Any) -> list[SpanCoreFields]:
        # Opened on first use: the trainer copies the agent into its runner processes.
        self._runs = self._runs or RolloutRuns(self._url)
        request = to_request(task, scenario=self._scenario, sampling=sampling_of(resources))
        return to_spans(await self._runs.run(request))


class StoreRunner:
    """Takes rollouts from `store` until it is cancelled."""

    def __init__(
        self, store: LightningStore, runs: RolloutRuns, *, scenario: Optional[str] = None, most: int = 256, worker_id: str = "millrace"
    ) -> None:
        self._store = store
        self._runs = runs
        self._scenario = scenario
        self._most = most
        self._worker_id = worker_id
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, *, poll_s: float = 1.0) -> None:
        try:
            while True:
                taken = None
                if len(self._running) < self._most:
                    taken = await self._store.dequeue_rollout(worker_id=self._worker_id)
                if taken is None:
                    await asyncio.sleep(poll_s)
                    continue
                task = asyncio.create_task(self._handle(taken))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
        finally:
            for task in list(self._running):
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _handle(self, rollout: AttemptedRollout) -> None:
        ids = (rollout.rollout_id, rollout.attempt.attempt_id)
        try:
            update = await (
                self._store.get_resources_by_id(rollout.resources_id) if rollout.resources_id else self._store.get_latest_resources()
            )
            sampling = sampling_of({} if update is None else update.resources)
            spans = to_spans(await self._runs.run(to_request(rollout.input, scenario=self._scenario, sampling=sampling)))
            places = await self._store.get_many_span_sequence_ids([ids] * len(spans))
            await self._store.add_many_spans(
                [
                    Span.from_core_fields(span, rollout_id=ids[0], attempt_id=ids[1], sequence_id=place)
                    for span, place in zip(spans, places)
                ]
            )
            await self._store.update_attempt(*ids, status="succeeded")
        except asyncio.CancelledError:
            await self._store.update_attempt(*ids, status="failed")
            raise
        except Exception as error:  # noqa: BLE001 - A rollout that cannot be run is a failed attempt; the others go on.
            await self._store.update_attempt(*ids, status="failed", metadata={"error": f"{type(error).__name__}: {error}"})


def sampling_of(resources: Mapping[str, Any]) -> Mapping[str, Any]:
    """The sampling parameters of the LLM among the resources."""
    for one in resources.values():
        found = getattr(one, "sampling_parameters", None)
        if found is not None:
            return dict(found)
    return {}


def to_spans(sampled: Sampled) -> list[SpanCoreFields]:
    """Two spans for each turn, since the adapter for tracers and the one for the LLM proxy look for different ones, then the reward."""
    if sampled.rollout.reward is None or sampled.trajectory is None:
        code, message = describe_failure(sampled.rollout)
        raise UnscoredError(f"{code}: {message}")
    at = time.time()
    spans: list[SpanCoreFields] = []
    for row in to_rows((sampled.rollout, sampled.trajectory), skip_empty=True):
        for turn in to_turns(row):
            id = f"{sampled.rollout.id}:{turn.branch}:{turn.number}"
            logprobs = json.dumps([{"token": "", "logprob": one} for one in turn.logprobs])
            traced = {
                "gen_ai.response.id": id,
                "gen_ai.response.model": sampled.trajectory.model,
                "prompt_token_ids": turn.prompt_ids,
                "response_token_ids": turn.completion_ids,
                "logprobs.content": logprobs,
            }
            proxied = {
                "llm.hosted_vllm.id": id,
                "llm.hosted_vllm.prompt_token_ids": str(turn.prompt_ids),
                "llm.hosted_vllm.response_token_ids": str([turn.completion_ids]),
            }
            for name, attributes in (("openai.chat.completion", traced), ("raw_gen_ai_request", proxied)):
                at += 1e-3
                span = SpanCoreFields(
                    name=name, status=TraceStatus(status_code="OK"), attributes=attributes, start_time=at, end_time=at + 1e-4
                )
                spans.append(span)
    reward = emit_reward(sampled.rollout.reward, propagate=False)
    return [*spans, reward.model_copy(update={"start_time": at + 1e-3, "end_time": at + 2e-3})]
