"""The backends of the service: LLM servers that join, drain and leave while rollouts run."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from ..stop import Stop
from ..wire.transport import Call, Transport, to_path
from .status import BackendList, BackendView, LeaveReply


class Backends:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def join(self, url: str, *, stop: Optional[Stop] = None, **record: Any) -> BackendView:
        """`record` has the rest of the protocol's join: id, dialect, model, api_key, policy_version, logprobs_mode."""
        return self._transport.json(Call("POST", "/v1/backends", body={"url": url, **record}, stop=stop), BackendView)

    def list(self, *, stop: Optional[Stop] = None) -> Sequence[BackendView]:
        return self._transport.json(Call("GET", "/v1/backends", stop=stop), BackendList).backends

    def drain(self, id: str, *, stop: Optional[Stop] = None) -> BackendView:
        return self._transport.json(Call("POST", to_path("/v1/backends/{id}/drain", id=id), stop=stop), BackendView)

    def leave(self, id: str, *, stop: Optional[Stop] = None) -> None:
        self._transport.json(Call("DELETE", to_path("/v1/backends/{id}", id=id), stop=stop), LeaveReply)
