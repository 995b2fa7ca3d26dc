"""Policy calls: pause sampling, load new weights into the backends, resume under their version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Optional

from ..stop import Stop
from ..wire.transport import POLL_S, Call, Transport

PolicyState = Literal["running", "pausing", "paused"]
#: `wait` finishes calls to backends that are in progress. `abort` cuts them; they continue from their partial tokens on resume.
PauseMode = Literal["wait", "abort"]


@dataclass(frozen=True)
class PolicyView:
    state: PolicyState
    #: Of the pause; None while running.
    mode: Optional[PauseMode]
    #: Who alone can end the pause; None while running, and for a pause that anyone can end.
    owner: Optional[str]
    policy_version: int
    #: The LoRA adapter that samples; None for the base model.
    adapter: Optional[str]
    #: Calls to backends in progress.
    generating: int
    since: str


class Policy:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, *, stop: Optional[Stop] = None) -> PolicyView:
        return self._transport.json(Call("GET", "/v1/policy", stop=stop), PolicyView)

    def pause(
        self, mode: PauseMode = "wait", *, owner: Optional[str] = None, settle: bool = True, stop: Optional[Stop] = None
    ) -> PolicyView:
        """Returns when nothing is being sampled, so that you can change the weights; with `settle=False`, at once. With an `owner`, only
        a resume with the same owner ends the pause; a pause of another owner is a `conflict`."""
        wait_s = POLL_S if settle else 0
        body = {"mode": mode} if owner is None else {"mode": mode, "owner": owner}
        call = Call("POST", "/v1/policy/pause", {"wait": wait_s}, body, wait_s=wait_s, stop=stop)
        while True:
            view = self._transport.json(call, PolicyView)
            if view.state != "pausing" or not settle:
                return view

    def resume(
        self,
        policy_version: Optional[int] = None,
        *,
        caches_flushed: bool = True,
        salt_caches: bool = True,
        allow_lower: bool = False,
        adapter: Optional[str] = None,
        base_model: bool = False,
        owner: Optional[str] = None,
        force: bool = False,
        stop: Optional[Stop] = None,
    ) -> PolicyView:
        """All backends now serve `policy_version`; by default it stays the same. `allow_lower` permits one below the current version,
        for a run that starts again from an earlier checkpoint.
        `caches_flushed` says whether the backends lost their prefix caches, so that rollouts may move to another backend. If they did
        not, calls under new weights carry a cache salt, unless `salt_caches` is False. `adapter` names the LoRA adapter that samples
        from now on; `base_model=True` returns to the model without one. `owner` is that of the pause; `force` ends one of any owner."""
        if adapter is not None and base_model:
            raise ValueError("adapter and base_model=True exclude each other")
        body: dict[str, Any] = {"caches_flushed": caches_flushed}
        if policy_version is not None:
            body["policy_version"] = policy_version
        if not salt_caches:
            body["salt_caches"] = False
        if allow_lower:
            body["allow_lower"] = True
        if owner is not None:
            body["owner"] = owner
        if force:
            body["force"] = True
        if adapter is not None or base_model:
            body["adapter"] = adapter
        return self._transport.json(Call("POST", "/v1/policy/resume", body=body, stop=stop), PolicyView)
