"""Submits any number of rollouts. Missing ids are generated here, so that a request can be sent again after any fault without
creating a rollout twice. When the queue is full, the rest is sent in smaller chunks."""

from __future__ import annotations

import uuid
from typing import Any, Mapping, Optional, Sequence, Union

from ..arguments import check_dicts, check_id
from ..error import MillraceError
from ..stop import Stop, joined
from ..wire.transport import Call, Transport
from .request import RolloutRequest
from .rollout import Accepted, SubmitReply

_LARGEST_CHUNK = 1000

#: One rollout request, or a list of them. Not `Iterable`: a dict is iterable, which would blur the errors of type checkers.
RolloutRequests = Union[RolloutRequest, Sequence[RolloutRequest]]


def submit_all(transport: Transport, requests: RolloutRequests, stop: Optional[Stop]) -> list[Accepted]:
    """Returns the rollouts in the order of the requests. If the service refuses one, chunks accepted before it stay accepted."""
    named = _to_named(requests)
    accepted: list[Accepted] = []
    size = _LARGEST_CHUNK
    with joined(stop) as pauses:
        while len(accepted) < len(named):
            chunk = named[len(accepted) : len(accepted) + size]
            try:
                accepted += _send(transport, chunk, stop)
                size = min(_LARGEST_CHUNK, size * 2)
            except MillraceError as error:
                # A chunk larger than the whole queue, or than the service's body limit, would be refused every time.
                pause_s = error.details.get("retry_after_s", 0.0 if error.code == "body-too-large" and len(chunk) > 1 else None)
                if pause_s is None:
                    raise
                size = max(1, len(chunk) // 2)
                pauses.wait(pause_s)
    return accepted


def _to_named(requests: Any) -> list[Mapping[str, Any]]:
    many = [requests] if isinstance(requests, Mapping) else requests
    checked = check_dicts(many, "submit", "a rollout request, a dict with `scenario` and `task`, or a list of them")
    return [{**one, "id": check_id(one.get("id") or f"r-{uuid.uuid4()}", "submit", "rollout")} for one in checked]


def _send(transport: Transport, chunk: Sequence[Mapping[str, Any]], stop: Optional[Stop]) -> Sequence[Accepted]:
    call = Call("POST", "/v1/rollouts", body={"rollouts": chunk}, raise_busy=True, stop=stop)
    rollouts = transport.json(call, SubmitReply).rollouts
    if len(rollouts) != len(chunk):
        raise MillraceError("internal", f"POST /v1/rollouts returned {len(rollouts)} rollouts for {len(chunk)} requests")
    return rollouts
