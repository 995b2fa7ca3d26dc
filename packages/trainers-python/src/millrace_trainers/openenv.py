"""OpenEnv: a rollout of Millrace as a session whose agent owns its loop. TRL's asynchronous trainer reads its turns and its reward."""

from __future__ import annotations

import json
import threading
from typing import Any, Callable, Mapping, Optional

from millrace import Client, MillraceError, RolloutView, Stop
from millrace.export import Row, to_rows
from millrace.export.rows import message_to_openai, tool_to_openai

from .logprobs import check_logprobs
from .rollouts import read_logprobs_rule
from .serving import describe_failure, to_request
from .turns import Turn, to_turns
from .versions import trainer_imports

with trainer_imports("openenv"):
    from openenv.core.harness.rollout import ResourceSession, ResourceSessionFactory, VerifyResult
    from openenv.core.harness.training import TrainingTrace, TrainingTurn

#: Makes a rollout request, {"scenario": …, "task": {…}}, from what the trainer passes as the task, such as a prompt.
ToTask = Callable[[Any], Mapping[str, Any]]


class MillraceSession(ResourceSession):
    """One rollout, which was submitted when the session was created."""

    def __init__(self, client: Client, id: str) -> None:
        self._client = client
        self.id = id
        self._view: Optional[RolloutView] = None

    def initial_messages(self) -> list[Any]:
        return []

    def list_tools(self) -> list[Any]:
        return []

    def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        raise NotImplementedError(f"Millrace calls the tools of rollout {self.id} itself")

    def wait_for_completion(self, timeout_s: Optional[float] = None) -> int:
        """0 if the rollout has a reward, otherwise 1."""
        stop = Stop()
        timer = None if timeout_s is None else threading.Timer(timeout_s, stop.stop)
        if timer is not None:
            timer.start()
        try:
            self._view = self._client.wait(self.id, stop=stop)
        except MillraceError as error:
            if not stop.stopped:
                raise
            raise TimeoutError(f"rollout {self.id} has not ended after {timeout_s} s") from error
        finally:
            if timer is not None:
                timer.cancel()
        return 1 if self._view.reward is None else 0

    def fetch_training_trace(self) -> TrainingTrace:
        """Every turn of every branch. Empty for a rollout without a reward, which must not be trained on."""
        view = self._ended()
        if view.reward is None:
            return TrainingTrace(turns=[])
        trajectory = self._client.trajectory(self.id)
        check_logprobs(trajectory, read_logprobs_rule())
        rows = to_rows((view, trajectory), skip_empty=True)
        return TrainingTrace(turns=[_to_turn(row, turn) for row in rows for turn in to_turns(row)])

    def verify(self, transcript: list[Any], final_state: Optional[Any] = None) -> VerifyResult:
        view = self._ended()
        result = view.result
        metrics: dict[str, Any] = {} if result is None else {"stop_reason": result.stop_reason, "turns": result.turns, **result.score}
        if view.reward is None:
            metrics["failure"], metrics["message"] = describe_failure(view)
        return VerifyResult(env_reward=view.reward, done=True, metrics=metrics)

    def close(self) -> None:
        """Cancels the rollout if it has not ended."""
        if self._view is None:
            try:
                self._client.cancel(self.id)
            except MillraceError:
                return  # It cannot be reached, or is not there: there is nothing to release on this side.

    def _ended(self) -> RolloutView:
        if self._view is None:
            self.wait_for_completion()
        assert self._view is not None
        return self._view


class MillraceSessionFactory(ResourceSessionFactory[MillraceSession]):
    """`harness_session_factory=MillraceSessionFactory` of TRL's trainer; it passes `sampling`. Without `to_task`, a task is a rollout
    request, or a conversation whose last message is one as JSON."""

    def __init__(
        self,
        *,
        sampling: Optional[Mapping[str, Any]] = None,
        to_task: Optional[ToTask] = None,
        scenario: Optional[str] = None,
        url: Optional[str] = None,
    ) -> None:
        self._client = Client(url)
        self._sampling = sampling or {}
        self._to_task = to_task or _read_task
        self._scenario = scenario

    def create(self, task: Any, seed: Optional[int] = None, episode_id: Optional[str] = None) -> MillraceSession:
        request = to_request(self._to_task(task), scenario=self._scenario, sampling=self._sampling)
        if episode_id is not None:
            request["id"] = f"openenv-{episode_id}"
        (accepted,) = self._client.submit(request)
        return MillraceSession(self._client, accepted.id)


def _read_task(task: Any) -> Mapping[str, Any]:
    if isinstance(task, Mapping):
        return task
    text = task if isinstance(task, str) else task[-1]["content"]
    read: Mapping[str, Any] = json.loads(text)
    return read


def _to_turn(row: Row, turn: Turn) -> TrainingTurn:
    said = [message_to_openai(one) for segment in turn.segments for one in segment.head.messages]
    return TrainingTurn(
        node_id=f"{row.rollout.id}:{turn.branch}:{turn.number}",
        prompt_token_ids=turn.prompt_ids,
        completion_token_ids=turn.completion_ids,
        per_token_logps=turn.logprobs,
        loss_mask=turn.loss_mask,
        request={"messages": _before(row, turn), "tools": [tool_to_openai(one) for one in row.trajectory.tools]},
        response={"choices": [{"message": said[-1] if said else {"role": "assistant", "content": turn.text}}]},
        metadata={"rollout_id": row.rollout.id, "branch": turn.branch, "turn": turn.number},
    )


def _before(row: Row, turn: Turn) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for segment in row.segments:
        if segment is turn.segments[0]:
            break
        messages += [message_to_openai(one) for one in segment.head.messages]
    return messages
