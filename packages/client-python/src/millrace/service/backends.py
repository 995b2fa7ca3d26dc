"""Backend calls: LLM servers join, drain and leave while rollouts run."""

from __future__ import annotations

from typing import Optional, Sequence

from ..arguments import check_id
from ..stop import Stop
from ..wire.transport import Call, Transport, to_path
from .status import BackendList, BackendView, Dialect, LeaveReply, LogprobsMode


class Backends:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def join(
        self,
        url: str,
        *,
        id: Optional[str] = None,
        dialect: Optional[Dialect] = None,
        model: Optional[str] = None,
        api_key: Optional[str] = None,
        policy_version: Optional[int] = None,
        logprobs_mode: Optional[LogprobsMode] = None,
        stop: Optional[Stop] = None,
    ) -> BackendView:
        """Adds an LLM server. `url` is its base address, without /v1 or /inference. The default `dialect` is
        what its server says that it is, the default `id` is made from the address, and joining again with the same id replaces the record.
        `model` is sent in every request.
        `api_key` is the server's own key. `policy_version` says which weights it serves, by default the current ones.
        `logprobs_mode` says how it was started; servers do not report it."""
        record = {
            "url": url,
            "id": id,
            "dialect": dialect,
            "model": model,
            "api_key": api_key,
            "policy_version": policy_version,
            "logprobs_mode": logprobs_mode,
        }
        body = {name: value for name, value in record.items() if value is not None}
        return self._transport.json(Call("POST", "/v1/backends", body=body, stop=stop), BackendView)

    def list(self, *, stop: Optional[Stop] = None) -> Sequence[BackendView]:
        return self._transport.json(Call("GET", "/v1/backends", stop=stop), BackendList).backends

    def drain(self, id: str, *, stop: Optional[Stop] = None) -> BackendView:
        """Places no new rollouts on it; those that run there finish."""
        path = to_path("/v1/backends/{id}/drain", id=check_id(id, "drain", "backend"))
        return self._transport.json(Call("POST", path, stop=stop), BackendView)

    def leave(self, id: str, *, stop: Optional[Stop] = None) -> None:
        """Removes it at once."""
        path = to_path("/v1/backends/{id}", id=check_id(id, "leave", "backend"))
        self._transport.json(Call("DELETE", path, stop=stop), LeaveReply)
