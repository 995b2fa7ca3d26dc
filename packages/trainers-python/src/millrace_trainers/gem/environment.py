"""One rollout of Millrace as an episode. An observation is the text that follows in the model's context, the chat template included:
observations and actions joined are exactly what a model would have seen."""

from __future__ import annotations

import random
import threading
import uuid
from typing import Any, Mapping, Optional, Sequence

from millrace import Client, MillraceError, RolloutView

from ..serving import describe_failure, to_request
from ..versions import trainer_imports
from .policy_server import Call, Calls, PolicyServer, TextCodec

with trainer_imports("gem"):
    from gem import Env

#: Stop reasons that are limits and not the agent's own end.
_TRUNCATED = ("max_turns", "max_tokens", "context_overflow", "rollout_timeout", "loop")


class UnscoredRollout(RuntimeError):
    """The episode has no reward, because something else than the policy failed. It is never a zero."""


class MillraceEnv(Env):
    """`tasks` are rollout requests, {"scenario": …, "task": {…}}, or tasks of `scenario`. `reset(seed)` chooses one by its seed. With
    `unscored_reward`, an episode that could not be scored ends with that reward instead of raising UnscoredRollout."""

    def __init__(
        self,
        tasks: Sequence[Mapping[str, Any]],
        tokenizer: TextCodec,
        *,
        server: Optional[PolicyServer] = None,
        client: Optional[Client] = None,
        scenario: Optional[str] = None,
        unscored_reward: Optional[float] = None,
        **_: Any,
    ) -> None:
        super().__init__()
        self.tasks, self.tokenizer, self.scenario, self.unscored_reward = tasks, tokenizer, scenario, unscored_reward
        self.client = client or Client()
        self.server = server or PolicyServer(self.client)
        self._random = random.Random()
        self._id: Optional[str] = None
        self._calls: Calls
        self._call: Optional[Call] = None
        self._seen: list[int] = []

    def reset(self, seed: Optional[int] = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed)
        self.close()
        if seed is not None:
            self._random.seed(seed)
        place = self._random.randrange(len(self.tasks))
        rollout_id = f"gem-{uuid.uuid4().hex}"
        request = {**to_request(self.tasks[place], scenario=self.scenario), "id": rollout_id}
        self._id, self._calls, self._seen = rollout_id, self.server.open(rollout_id), []
        self.client.submit(request)  # type: ignore[arg-type]
        threading.Thread(target=self._await_end, args=(rollout_id, self._calls), daemon=True).start()
        self._call = self._calls.take()
        if self._call is None:
            raise UnscoredRollout(": ".join(describe_failure(self._take_view())))
        return self._observe(self._call), {"rollout_id": rollout_id, "task": place}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._call is None:
            raise RuntimeError("the episode has ended, or has not begun: call reset")
        ids = [int(one) for one in self.tokenizer.encode(action, add_special_tokens=False)]
        stop = self._call.stop_ids
        if stop and (not ids or ids[-1] not in stop):
            ids.append(stop[0])
        self._seen = self._call.prompt_ids + ids
        self._call.answer(ids)
        self._call = self._calls.take()
        if self._call is not None:
            return self._observe(self._call), 0.0, False, False, {"rollout_id": self._id}
        return self._end(self._take_view())

    def spawn(self, same_state: bool = False, **kwargs: Any) -> "MillraceEnv":
        if same_state:
            raise NotImplementedError("a sandbox in use cannot be copied: spawn(same_state=True) is not possible")
        own = {"server": self.server, "client": self.client, "scenario": self.scenario, "unscored_reward": self.unscored_reward}
        return MillraceEnv(**{"tasks": self.tasks, "tokenizer": self.tokenizer, **own, **kwargs})

    def close(self) -> None:
        """Cancels the episode if it has not ended."""
        rollout_id, self._id = self._id, None
        call, self._call = self._call, None
        if rollout_id is None or call is None:
            return
        try:
            self.client.cancel(rollout_id)
            # Before its call is given up, which would count as a failure of the backend.
            self.client.wait(rollout_id)
        except MillraceError:
            pass  # It cannot be reached, or is not there: there is nothing to cancel.
        call.answer(None)
        self.server.forget(rollout_id)

    def _observe(self, call: Call) -> str:
        """What is new since the last action; everything, if the history was rewritten."""
        known = len(self._seen)
        new = call.prompt_ids[known:] if call.prompt_ids[:known] == self._seen else call.prompt_ids
        return self.tokenizer.decode(new, skip_special_tokens=False)

    def _await_end(self, rollout_id: str, calls: Calls) -> None:
        try:
            self.client.wait(rollout_id)
        finally:
            calls.end()

    def _take_view(self) -> RolloutView:
        assert self._id is not None
        rollout_id, self._id = self._id, None
        self.server.forget(rollout_id)
        return self.client.get(rollout_id)

    def _end(self, view: RolloutView) -> tuple[str, float, bool, bool, dict[str, Any]]:
        result = view.result
        reason = None if result is None else result.stop_reason
        info: dict[str, Any] = {"rollout_id": view.id, "stop_reason": reason, "score": {} if result is None else result.score}
        if view.reward is not None:
            truncated = reason in _TRUNCATED
            return "", view.reward, not truncated, truncated, info
        code, message = describe_failure(view)
        if self.unscored_reward is None:
            raise UnscoredRollout(f"{code}: {message}")
        return "", self.unscored_reward, False, True, {**info, "unscored": code}
