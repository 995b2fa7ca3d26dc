"""The errors of a scenario: those that its author raises, and those that the sandbox raises."""

from __future__ import annotations

BLAMES = ("task", "policy", "sandbox", "verifier")


class ScenarioError(Exception):
    """Ends the attempt with an explicit blame. `task`: the task is broken. `policy`: the agent did something that cannot be judged, and
    the rollout is done with the lowest reward. `sandbox`: the sandbox is not usable, and the rollout is retried. `verifier`: the reward
    could not be measured. Only `policy` leaves a reward."""

    def __init__(self, blame: str, message: str) -> None:
        if blame not in BLAMES:
            raise ValueError(f"blame is {blame!r}; use one of {', '.join(BLAMES)}")
        super().__init__(message)
        self.blame = blame


class SandboxError(Exception):
    """A call to a sandbox failed. `code` says how: `not-found`, `artifact-too-large`, `sandbox-died` and others. One that you do not
    catch is attributed as in a scenario in TypeScript."""

    def __init__(self, code: str, message: str, ask: int) -> None:
        super().__init__(message)
        self.code = code
        self.ask = ask


class AgentStopped(BaseException):
    """Raised by `rollout.sample()` when there is no next turn: the agent reached a limit, or the rollout was cancelled."""


class Cancelled(BaseException):
    """Raised in a function whose time is up, or whose rollout ended."""
