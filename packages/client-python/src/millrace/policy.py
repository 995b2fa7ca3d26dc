"""The policy's weights: sampling is paused while the trainer changes them, and resumed under the version that it names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from .stop import Stop, joined
from .transport import Call, Transport

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5


@dataclass(frozen=True)
class PolicyView:
    """`state` is running, pausing or paused; `generating` counts the calls to backends that are under way."""

    state: str
    mode: Optional[str]
    policy_version: int
    generating: int
    since: str


class Policy:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, *, stop: Optional[Stop] = None) -> PolicyView:
        return self._transport.json(Call("GET", "/v1/policy", stop=stop), PolicyView)

    def pause(self, mode: str = "wait", *, settle: bool = True, stop: Optional[Stop] = None) -> PolicyView:
        """Comes back once nothing is sampled any more, so that the weights may be changed; with `settle=False` at once. Mode
        `wait` lets calls to backends end, `abort` cuts them; they go on from their partial tokens after the pause."""
        view = self._transport.json(Call("POST", "/v1/policy/pause", body={"mode": mode}, stop=stop), PolicyView)
        pause_s = _FIRST_PAUSE_S
        with joined(stop) as pauses:
            while settle and view.state == "pausing":
                pauses.wait(pause_s)
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
                view = self.get(stop=stop)
        return view

    def resume(
        self, policy_version: Optional[int] = None, *, caches_flushed: bool = True, stop: Optional[Stop] = None
    ) -> PolicyView:
        """From now on the backends serve `policy_version`; absent: the weights that they served before."""
        body: dict[str, Any] = {"caches_flushed": caches_flushed}
        if policy_version is not None:
            body["policy_version"] = policy_version
        return self._transport.json(Call("POST", "/v1/policy/resume", body=body, stop=stop), PolicyView)
