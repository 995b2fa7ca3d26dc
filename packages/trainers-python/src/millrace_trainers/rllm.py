"""rLLM: a remote agent runtime that runs tasks as rollouts of Millrace. rLLM's gateway stays the place where its trainer reads the turns:
it joins the service as a backend, with the session in its address, and a rollout has the id of its session. What the gateway kept is
compared with the ledger, so that a turn that was sampled twice, or is missing, is never trained on."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from typing import Any, Mapping, Optional, Sequence

import rllm.engine.remote_runtime as remote_runtime
from rllm.engine.remote_runtime.protocol import RemoteTaskResult
from rllm.workflows.workflow import TerminationReason

from millrace import Dialect, RolloutView
from millrace.export import to_rows

from .rollouts import Sampled
from .serving import RolloutRuns, TaskError, describe_failure, to_request, to_sampling
from .turns import to_turns

_REASONS = {
    "max_turns": TerminationReason.MAX_TURNS_EXCEEDED,
    "max_tokens": TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED,
    "context_overflow": TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED,
    "rollout_timeout": TerminationReason.TIMEOUT,
}


def register(*, scenario: Optional[str] = None, sampling: Optional[Mapping[str, Any]] = None) -> None:
    """Call it before rLLM's trainer is made: `rllm.remote_runtime.backend=millrace` is then this runtime. rLLM tells a remote runtime
    nothing about sampling: pass here what its trainer has, in the names of vLLM."""
    to_sampling(sampling or {})  # What cannot be passed on is refused before training begins.
    own = remote_runtime.create_remote_runtime

    def create_remote_runtime(config: Any, exp_id: str = "", model_id: str = "") -> Any:
        if config.backend != "millrace":
            return own(config, exp_id=exp_id, model_id=model_id)
        return MillraceRuntime(scenario=scenario, sampling=sampling, model=model_id or None)

    remote_runtime.create_remote_runtime = create_remote_runtime


class MillraceRuntime:
    """A task is a rollout request, {"scenario": …, "task": {…}}, or a task of `scenario`. A rollout is never retried in its session."""

    def __init__(
        self,
        *,
        scenario: Optional[str] = None,
        sampling: Optional[Mapping[str, Any]] = None,
        model: Optional[str] = None,
        url: Optional[str] = None,
        dialect: Dialect = "vllm-completions",
    ) -> None:
        self._scenario, self._sampling, self._model, self._url, self._dialect = scenario, sampling, model, url, dialect
        self._gateways: set[str] = set()
        self._lock = asyncio.Lock()
        self._runs: Optional[RolloutRuns] = None

    def initialize(self) -> None:
        self._runs = RolloutRuns(self._url)

    def shutdown(self) -> None:
        self._runs = None

    async def execute_tasks(self, submissions: Sequence[Any], timeout: Optional[float] = None) -> list[Any]:
        return list(await asyncio.gather(*(self._run(one, timeout) for one in submissions)))

    async def _run(self, submission: Any, timeout: Optional[float]) -> Any:
        start = time.monotonic()
        try:
            sampled = await asyncio.wait_for(self._sample(submission), timeout)
        except asyncio.TimeoutError:
            return self._to_result(submission, start, error=f"not done after {timeout} s", reason=TerminationReason.TIMEOUT)
        except TaskError as error:
            return self._to_result(submission, start, error=str(error), reason=TerminationReason.ERROR)
        view = sampled.rollout
        fault = describe_failure(view)[1] if view.reward is None else await asyncio.to_thread(find_fault, sampled, submission.inference_url)
        if fault is not None:
            # Finished, and without a reward and turns: rLLM would count an unfinished task as a zero.
            await asyncio.to_thread(_call, "DELETE", _session_of(submission.inference_url))
            return self._to_result(submission, start, error=fault, reason=TerminationReason.ERROR, finished=True)
        return self._to_result(submission, start, view=view, reason=_to_reason(view), finished=True)

    async def _sample(self, submission: Any) -> Sampled:
        if self._runs is None:
            raise RuntimeError("the runtime is not initialised: call initialize()")
        await self._join(submission)
        request = to_request(submission.task, scenario=self._scenario, sampling=self._sampling)
        limits = {**request.get("limits", {}), "max_retries": 0}
        named: Any = {**request, "id": submission.session_id, "group": f"rllm-{submission.task_id}", "limits": limits}
        return await self._runs.run(named)

    async def _join(self, submission: Any) -> None:
        address = _session_of(submission.inference_url).replace(submission.session_id, "{session}")
        async with self._lock:
            if address not in self._gateways:
                assert self._runs is not None
                await self._runs.client.backends.join(address, id="rllm-gateway", dialect=self._dialect, model=self._model)
                self._gateways.add(address)

    def _to_result(
        self,
        submission: Any,
        start: float,
        *,
        view: Optional[RolloutView] = None,
        error: Optional[str] = None,
        reason: Optional[TerminationReason] = None,
        finished: bool = False,
    ) -> Any:
        result = None if view is None else view.result
        numbers = {} if result is None else {name: one for name, one in result.score.items() if isinstance(one, (int, float))}
        return RemoteTaskResult(
            finished=finished,
            session_id=submission.session_id,
            task_id=submission.task_id,
            reward=None if view is None else view.reward,
            error=error,
            termination_reason=reason,
            elapsed=time.monotonic() - start,
            raw_result={"metrics": numbers, "stop_reason": None if result is None else result.stop_reason},
            metadata={"rollout_id": submission.session_id},
        )


def find_fault(sampled: Sampled, inference_url: str) -> Optional[str]:
    """None if the gateway kept exactly the turns of the ledger."""
    rows = [] if sampled.trajectory is None else to_rows((sampled.rollout, sampled.trajectory), skip_empty=True)
    wanted = [turn.completion_ids for row in rows for turn in to_turns(row)]
    # The gateway writes traces in the background.
    _call("POST", f"{inference_url.split('/sessions/')[0]}/admin/flush")
    kept = [one["completion_token_ids"] for one in json.loads(_call("GET", f"{_session_of(inference_url)}/traces"))]
    if kept == wanted:
        return None
    return f"rollout {sampled.rollout.id} has {len(wanted)} turns, and the gateway kept {len(kept)}, or other ids: it is not trained on"


def _to_reason(view: RolloutView) -> TerminationReason:
    return _REASONS.get((view.result.stop_reason if view.result is not None else None) or "", TerminationReason.ENV_DONE)


def _session_of(inference_url: str) -> str:
    return inference_url.rstrip("/").removesuffix("/v1")


def _call(method: str, url: str) -> bytes:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method)) as reply:
            found: bytes = reply.read()
            return found
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{method} {url} of rLLM's gateway answered {error.code}") from None
