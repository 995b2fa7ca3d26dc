"""One rollout, as the functions of a scenario see it: the same object from `init` to `evaluate`."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any, Mapping, Optional

from .parts import End
from .sandbox import Sandbox

if TYPE_CHECKING:
    from .connection import Connection
    from .runner import Runner
    from .tool import ToolDefinition


class Rollout:
    """Keep what belongs to one rollout in `state`: many rollouts use the file at the same time."""

    #: The task: an instance of `Task` if the file has this class, otherwise a dictionary.
    task: Any
    #: `limits` of the submission with their defaults, such as `tool_timeout_s`.
    limits: Mapping[str, Any]
    #: Yours, from `init` to `evaluate`.
    state: dict[str, Any]
    #: How the agent's part ended; in `collect` and `evaluate`.
    end: End
    #: What `collect` returned; in `evaluate`.
    artifact: bytes
    #: How many tokens the agent sampled; in `evaluate`.
    sampled_tokens: int
    #: What ended the last turn: a stop string, or the id of a stop token; in `run`.
    stopped_by: Any

    def __init__(self, connection: "Connection", task: Any) -> None:
        self.task = task
        self.limits = {}
        self.state = {}
        self.artifact = b""
        self.sampled_tokens = 0
        self.stopped_by = None
        self.tools: dict[str, "ToolDefinition"] = {}
        self.runner: Optional["Runner"] = None
        self._connection = connection
        self._call = 0
        self._has_sandbox = False

    def enter(self, call: int, context: Mapping[str, Any]) -> None:
        """From here on the rollout is in this call of the worker."""
        self._call = call
        self._has_sandbox = bool(context.get("has_sandbox"))
        if "limits" in context:
            self.limits = context["limits"]
        if "end" in context:
            self.end = End(context["end"]["stop_reason"], context["end"]["answer"])
        if "artifact" in context:
            self.artifact = b64decode(context["artifact"])
        self.sampled_tokens = context.get("sampled_tokens", self.sampled_tokens)
        self.stopped_by = context.get("stopped_by")

    @property
    def sandbox(self) -> Sandbox:
        """The agent's sandbox. In `evaluate` it is gone: use `open_sandbox()`."""
        if not self._has_sandbox:
            raise RuntimeError("there is no sandbox here: the file has no `sandbox`, or this is `evaluate`, which has `open_sandbox()`")
        return Sandbox(lambda method, arguments: self._ask(method, {**arguments, "sandbox": "agent"}))

    def open_sandbox(self, spec: Optional[Mapping[str, Any]] = None) -> Sandbox:
        """A fresh sandbox that the agent never touched, only in `evaluate`; by default as the agent's. It is closed when `evaluate`
        returns."""
        number = self._ask("open_sandbox", {"spec": dict(spec)} if spec is not None else {})["sandbox"]
        return Sandbox(lambda method, arguments: self._ask(method, {**arguments, "sandbox": number}))

    def sample(self, observation: Any = None, sampling: Optional[Mapping[str, Any]] = None) -> str:
        """Only in `run`: says `observation` to the agent, as a user message or as messages, and returns the text of its next turn that
        calls no tool. The first call takes no observation: `init` returned what the agent starts with. `Append(text)` continues the
        agent's own turn instead. `sampling` replaces parameters of the submission from this turn on. Raises `AgentStopped` when there is
        no next turn."""
        if self.runner is None:
            raise RuntimeError("rollout.sample() is for the function `run`")
        return self.runner.sample(observation, sampling)

    def _ask(self, method: str, arguments: dict[str, Any]) -> Any:
        return self._connection.ask(self._call, method, arguments)
