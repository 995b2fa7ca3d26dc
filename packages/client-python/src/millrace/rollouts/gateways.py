"""Gateways: an agent that runs elsewhere talks to one as to an LLM API, and you post its reward."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Mapping, Optional

from ..arguments import check_id
from .rollout import RolloutView
from ..stop import Stop
from ..wire.transport import POLL_S, Call, Transport, to_path


@dataclass(frozen=True)
class Gateway:
    id: str
    #: For requests to the addresses below. It is shown only here, and opens nothing else.
    key: str
    #: For OpenAI's clients.
    base_url: str
    #: For Anthropic's and Google's clients, which add `/v1` or `/v1beta` themselves.
    root_url: str


class Gateways:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def open(self, request: Optional[Mapping[str, Any]] = None, *, stop: Optional[Stop] = None) -> Gateway:
        """`request` has the fields of `POST /v1/gateways`, such as `group`, `sampling`, `limits` and `metadata`. It has an id of its own:
        a call that is repeated after a broken connection would find it taken."""
        body = {"id": f"g-{uuid.uuid4()}", **(request or {})}
        return self._transport.json(Call("POST", "/v1/gateways", body=body, stop=stop), Gateway)

    def wait(self, id: str, *, stop: Optional[Stop] = None) -> RolloutView:
        """Returns its rollout when it has ended."""
        path = to_path("/v1/gateways/{id}", id=check_id(id, "wait", "gateway"))
        call = Call("GET", path, {"wait": POLL_S}, wait_s=POLL_S, stop=stop)
        while True:
            view = self._transport.json(call, RolloutView)
            if view.ended:
                return view

    def reward(
        self, id: str, reward: float, *, score: Optional[Mapping[str, Any]] = None, stop: Optional[Stop] = None
    ) -> RolloutView:
        """Ends it with its reward. `score` has details."""
        return self._end(id, {"reward": reward, "score": dict(score or {})}, stop)

    def discard(self, id: str, reason: str, *, stop: Optional[Stop] = None) -> RolloutView:
        """Ends it without a reward."""
        return self._end(id, {"discard": reason}, stop)

    def _end(self, id: str, body: Mapping[str, Any], stop: Optional[Stop]) -> RolloutView:
        path = to_path("/v1/gateways/{id}/reward", id=check_id(id, "end", "gateway"))
        return self._transport.json(Call("POST", path, body=body, stop=stop), RolloutView)
