"""Evaluation calls. With an id of your own, a program that was killed runs again and goes on from what is done."""

from __future__ import annotations

import uuid
from typing import Iterator, Optional

from ..arguments import check_dict, check_dicts, check_id
from ..stop import Stop
from ..wire.transport import POLL_S, Call, Transport, to_path
from .evaluation import EvaluationList, EvaluationState, EvaluationTask, EvaluationTaskPage, EvaluationView
from .request import EvaluationRequest

_TASKS = "a list of tasks, which are dicts"
_PAGE = 200


class Evaluations:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, evaluation: EvaluationRequest, *, stop: Optional[Stop] = None) -> EvaluationView:
        """Starts an evaluation. A repeated id with the same content changes nothing, and returns the evaluation as it is."""
        fields = check_dict(evaluation, "create", "an evaluation request")
        tasks = {"tasks": check_dicts(fields["tasks"], "create", _TASKS)} if "tasks" in fields else {}
        body = {**fields, **tasks, "id": check_id(fields.get("id") or f"e-{uuid.uuid4()}", "create", "evaluation")}
        return self._transport.json(Call("POST", "/v1/evaluations", body=body, stop=stop), EvaluationView)

    def get(self, id: str, *, stop: Optional[Stop] = None) -> EvaluationView:
        """Its progress, and the numbers so far."""
        return self._transport.json(Call("GET", _path(id, "get"), stop=stop), EvaluationView)

    def wait(self, id: str, *, stop: Optional[Stop] = None) -> EvaluationView:
        """Returns when every sample has ended, or the evaluation was cancelled."""
        call = Call("GET", _path(id, "wait"), {"wait": POLL_S}, wait_s=POLL_S, stop=stop)
        while True:
            view = self._transport.json(call, EvaluationView)
            if view.ended:
                return view

    def list(self, *, state: Optional[EvaluationState] = None, stop: Optional[Stop] = None) -> Iterator[EvaluationView]:
        """In the order of creation."""
        after: Optional[str] = None
        while True:
            page = self._transport.json(Call("GET", "/v1/evaluations", {"state": state, "after": after}, stop=stop), EvaluationList)
            yield from page.evaluations
            after = page.next
            if after is None:
                return

    def tasks(self, id: str, *, stop: Optional[Stop] = None) -> Iterator[EvaluationTask]:
        """Every task in its order, with its samples so far."""
        path = f"{_path(id, 'tasks')}/tasks"

        def read() -> Iterator[EvaluationTask]:
            start: Optional[int] = 0
            while start is not None:
                page = self._transport.json(Call("GET", path, {"from": start, "limit": _PAGE}, stop=stop), EvaluationTaskPage)
                yield from page.tasks
                start = page.next

        return read()

    def retry(self, id: str, *, stop: Optional[Stop] = None) -> EvaluationView:
        """Takes every sample that ended without a reward again."""
        return self._transport.json(Call("POST", f"{_path(id, 'retry')}/retry", stop=stop), EvaluationView)

    def cancel(self, id: str, *, stop: Optional[Stop] = None) -> EvaluationView:
        """What was measured stays readable."""
        return self._transport.json(Call("DELETE", _path(id, "cancel"), stop=stop), EvaluationView)


def _path(id: str, call: str) -> str:
    return to_path("/v1/evaluations/{id}", id=check_id(id, call, "evaluation"))
