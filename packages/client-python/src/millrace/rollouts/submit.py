"""Submitting many rollouts: ids are made here where the caller gave none, so that whatever breaks, the same request can be sent
again and changes nothing. A full queue is waited out in smaller pieces."""

from __future__ import annotations

import re
import uuid
from typing import Any, Mapping, Optional, Sequence

from ..error import MillraceError, caller_error
from ..stop import Stop, joined
from ..wire.transport import Call, Transport
from .rollout import Accepted, SubmitReply

_LARGEST_PIECE = 1000
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\Z")

#: A submission as the protocol has it: `scenario` and `task`, and `id`, `group`, `sampling`, `limits` and `metadata` where wanted.
Submission = Mapping[str, Any]


def submit_all(transport: Transport, submissions: Sequence[Submission], stop: Optional[Stop]) -> list[Accepted]:
    """In order. Raises the service's refusal; pieces accepted before it stay accepted."""
    named = [{**one, "id": to_id(one.get("id") or f"r-{uuid.uuid4()}")} for one in submissions]
    accepted: list[Accepted] = []
    size = _LARGEST_PIECE
    with joined(stop) as pauses:
        while len(accepted) < len(named):
            piece = named[len(accepted) : len(accepted) + size]
            try:
                accepted += _send(transport, piece, stop)
                size = min(_LARGEST_PIECE, size * 2)
            except MillraceError as error:
                # A piece larger than the whole queue, or than the service's body limit, would be refused for ever.
                pause_s = error.details.get("retry_after_s", 0.0 if error.code == "body-too-large" and len(piece) > 1 else None)
                if pause_s is None:
                    raise
                size = max(1, len(piece) // 2)
                pauses.wait(pause_s)
    return accepted


def _send(transport: Transport, piece: Sequence[Submission], stop: Optional[Stop]) -> Sequence[Accepted]:
    call = Call("POST", "/v1/rollouts", body={"rollouts": piece}, raise_busy=True, stop=stop)
    rollouts = transport.json(call, SubmitReply).rollouts
    if len(rollouts) != len(piece):
        raise MillraceError("internal", f"POST /v1/rollouts answered {len(rollouts)} rollouts for {len(piece)} submissions")
    return rollouts


def to_id(text: Any) -> str:
    if isinstance(text, str) and _ID.match(text):
        return text
    raise caller_error(
        f"{text!r} is not an id: it must be 1 to 128 characters of A-Z a-z 0-9 . _ : -, and begin with a letter or a digit"
    )
