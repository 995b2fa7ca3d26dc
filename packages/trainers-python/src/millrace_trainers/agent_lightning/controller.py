"""A rollout controller of Agent Lightning 1.0: takes queuing rollouts of its gateway, runs each in Millrace, and reports every turn as a
model request with the ids and logprobs of the trajectory. A rollout without a reward fails and reports no turn, so nothing is trained
on it."""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.error
import urllib.request
from typing import Any, Mapping, Optional

from millrace import MillraceError
from millrace.export import to_rows
from millrace.export.rows import message_to_openai

from ..rollouts import Sampled
from ..serving import RolloutRuns, TaskError, describe_failure, to_request, to_sampling
from ..turns import Turn, to_turns

log = logging.getLogger("millrace_trainers.agent_lightning")
#: The id that the gateway reads events of.
ATTEMPT = "0"


class Controller:
    """`gateway` is the address of Agent Lightning's server, `key` its key. A rollout's `input` is a task, as `to_request` takes it."""

    def __init__(
        self,
        gateway: str,
        runs: RolloutRuns,
        *,
        key: Optional[str] = None,
        scenario: Optional[str] = None,
        sampling: Optional[Mapping[str, Any]] = None,
        val_sampling: Optional[Mapping[str, Any]] = None,
        most: int = 256,
    ) -> None:
        """The gateway keeps its sampling settings to itself: `sampling` are those of training, `val_sampling` those of validation."""
        self._sampling = {True: to_sampling(sampling or {}), False: to_sampling(val_sampling or sampling or {})}
        self._gateway = gateway.rstrip("/")
        self._key = key
        self._runs = runs
        self._scenario = scenario
        self._most = most
        self._running: dict[str, asyncio.Task[None]] = {}

    async def run(self, *, poll_s: float = 1.0) -> None:
        """Until it is cancelled; then so are its rollouts, in Millrace and at the gateway."""
        try:
            while True:
                try:
                    await self._claim()
                except OSError as error:
                    log.warning("the gateway at %s cannot be read: %s", self._gateway, error)
                await asyncio.sleep(poll_s)
        finally:
            running = list(self._running.values())
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _claim(self) -> None:
        free = self._most - len(self._running)
        if free <= 0:
            return
        for rollout in await self._call("GET", f"/api/rollouts?state_in=queuing&limit={free}"):
            id = rollout["rollout_id"]
            if id not in self._running and await self._patch(id, {"state": "running", "last_attempt_id": ATTEMPT}):
                task = self._running[id] = asyncio.create_task(self._handle(rollout))
                task.add_done_callback(lambda _, id=id: self._running.pop(id, None))

    async def _handle(self, rollout: Mapping[str, Any]) -> None:
        id = rollout["rollout_id"]
        try:
            limit = (rollout.get("config") or {}).get("timeout_seconds")
            sampling = self._sampling[bool(rollout.get("is_train", True))]
            request = to_request(rollout["input"], scenario=self._scenario, sampling=sampling)
            sampled = await asyncio.wait_for(self._runs.run(request), limit)
            if sampled.rollout.reward is None:
                code, message = describe_failure(sampled.rollout)
                await self._patch(id, {"state": "failed", "error_message": f"{code}: {message}"})
                return
            for event in to_events(sampled):
                await self._call("POST", f"/api/rollouts/{id}/attempt/{ATTEMPT}/events", event)
            await self._patch(id, {"state": "succeeded"})
        except asyncio.CancelledError:
            await self._patch(id, {"state": "failed", "error_message": "the controller was stopped"})
            raise
        except (TaskError, MillraceError, OSError, asyncio.TimeoutError) as error:
            log.warning("rollout %s: %s", id, error)
            await self._patch(id, {"state": "failed", "error_message": f"{type(error).__name__}: {error}"})

    async def _patch(self, id: str, status: Mapping[str, Any]) -> bool:
        """False if the gateway refuses, for example because another controller was first."""
        try:
            await self._call("PATCH", f"/api/rollouts/{id}", {"status": status})
            return True
        except OSError as error:
            log.warning("rollout %s cannot be set to %s: %s", id, status.get("state"), error)
            return False

    async def _call(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None) -> Any:
        headers = {"content-type": "application/json", **({"authorization": f"Bearer {self._key}"} if self._key else {})}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._gateway}{path}", data=data, headers=headers, method=method)

        def send() -> Any:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return json.load(reply)

        return await asyncio.to_thread(send)


def to_events(sampled: Sampled) -> list[dict[str, Any]]:
    """One model request for each turn of each branch, in order, and the reward."""
    assert sampled.trajectory is not None
    rows = to_rows((sampled.rollout, sampled.trajectory), skip_empty=True)
    turns = [one for row in rows for one in to_turns(row)]
    events = [{"event_type": "model_request", "data": _to_call(one, sampled)} for one in turns]
    return [*events, {"event_type": "reward", "data": {"value": sampled.rollout.reward, "source": "millrace"}}]


def _to_call(turn: Turn, sampled: Sampled) -> dict[str, Any]:
    assert sampled.trajectory is not None
    model = sampled.trajectory.model
    messages = [message_to_openai(one) for segment in turn.segments for one in segment.head.messages]
    version = None if turn.policy_versions is None else turn.policy_versions.last
    finish = turn.finish_reason
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": messages[-1] if messages else {"role": "assistant", "content": turn.text},
        "token_ids": turn.completion_ids,
        "logprobs": {"content": [{"token": "", "logprob": one} for one in turn.logprobs]},
    }
    usage = {"prompt_tokens": len(turn.prompt_ids), "completion_tokens": len(turn.completion_ids)}
    return {
        "model": model,
        "model_version": version,
        "server": {"model": model, "version": version},
        "request": {"model": model},
        "response": {
            "id": f"{sampled.rollout.id}:{turn.branch}:{turn.number}",
            "prompt_token_ids": turn.prompt_ids,
            "choices": [choice],
            "usage": usage,
        },
        "http_status": 200,
        "status": "ok",
        "usage": usage,
        "finish_reason": finish,
    }
