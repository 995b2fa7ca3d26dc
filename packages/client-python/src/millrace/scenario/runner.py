"""The thread of a scenario's `run`: it waits in `rollout.sample()` while the worker samples the agent's next turn."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional

from .errors import AgentStopped
from .parts import Append, Finish, to_messages

if TYPE_CHECKING:
    from .rollout import Rollout

#: How long `run` may take to return after the agent stopped.
STOP_S = 5.0

#: Replies to a call of the worker: its number, and what `run` said or raised.
Reply = Callable[[int, Any, Optional[BaseException]], None]


class Runner:
    def __init__(self, rollout: "Rollout", run: Callable[["Rollout"], Any], reply: Reply) -> None:
        self._rollout = rollout
        self._run = run
        self._reply = reply
        self._turns: queue.Queue[Optional[tuple[int, dict[str, Any]]]] = queue.Queue()
        self._owed: Optional[int] = None
        self._text = ""
        self._is_started = False
        self.thread = threading.Thread(target=self._work, name="run", daemon=True)
        self._stopped = False

    def turn(self, call: int, context: dict[str, Any]) -> None:
        """The agent's next turn; the reply to this call is what `run` says to it."""
        self._turns.put((call, context))
        if not self._is_started:
            self._is_started = True
            self.thread.start()

    def stop(self) -> None:
        """There is no next turn. Returns when `run` has ended, or after `STOP_S`."""
        self._stopped = True
        self._turns.put(None)
        if self._is_started and self.thread is not threading.current_thread():
            self.thread.join(STOP_S)

    def sample(self, observation: Any, sampling: Optional[Mapping[str, Any]]) -> str:
        if threading.current_thread() is not self.thread:
            raise RuntimeError("rollout.sample() is for the function `run`, in its own thread")
        if self._owed is None and observation is not None:
            raise RuntimeError("the first rollout.sample() takes no observation: `init` returned what the agent starts with")
        if self._owed is None and sampling is not None:
            raise RuntimeError("the first rollout.sample() takes no sampling: return Opening(messages, sampling=...) from `init`")
        if self._owed is not None:
            if observation is None:
                raise RuntimeError("rollout.sample(observation) needs what the agent reads next")
            said = {"append": observation.text} if isinstance(observation, Append) else {"messages": to_messages(observation)}
            self._settle(said if sampling is None else {**said, "sampling": dict(sampling)}, None)
        turn = None if self._stopped else self._turns.get()
        if turn is None:
            raise AgentStopped()
        self._owed, context = turn
        self._rollout.enter(self._owed, context)
        self._text = str(context["text"])
        return self._text

    def _work(self) -> None:
        try:
            ended = self._run(self._rollout)
            answer = ended.answer if isinstance(ended, Finish) else ended if isinstance(ended, str) else self._text
            self._settle({"finish": answer}, None)
        except AgentStopped:
            self._settle({"finish": self._text}, None)
        except BaseException as error:
            self._settle(None, error)

    def _settle(self, value: Any, error: Optional[BaseException]) -> None:
        if self._owed is None and self._turns.empty():
            return
        if self._owed is None:  # `run` ended before its first sample
            turn = self._turns.get()
            self._owed = turn[0] if turn is not None else None
        call, self._owed = self._owed, None
        if call is not None:
            self._reply(call, value, error)
