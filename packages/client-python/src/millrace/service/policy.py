"""The policy's weights: sampling is paused while the trainer changes them, and resumed under the version that it names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from ..stop import Stop
from ..wire.transport import POLL_S, Call, Transport


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
        wait_s = POLL_S if settle else 0
        call = Call("POST", "/v1/policy/pause", {"wait": wait_s}, {"mode": mode}, wait_s=wait_s, stop=stop)
        while True:
            view = self._transport.json(call, PolicyView)
            if view.state != "pausing" or not settle:
                return view

    def resume(
        self, policy_version: Optional[int] = None, *, caches_flushed: bool = True, stop: Optional[Stop] = None
    ) -> PolicyView:
        """From now on the backends serve `policy_version`; absent: the weights that they served before."""
        body: dict[str, Any] = {"caches_flushed": caches_flushed}
        if policy_version is not None:
            body["policy_version"] = policy_version
        return self._transport.json(Call("POST", "/v1/policy/resume", body=body, stop=stop), PolicyView)
