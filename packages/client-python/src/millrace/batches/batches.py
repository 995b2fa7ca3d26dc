"""Batch calls, and the groups that batches deliver. A consumer that acknowledges receives each group, across any crash."""

from __future__ import annotations

import dataclasses
import json
import uuid
from typing import Any, Iterator, Mapping, Optional, Sequence

from ..arguments import check_dict, check_dicts, check_id
from ..stop import Stop
from ..wire.transport import POLL_S, Call, Query, Transport, to_path
from .batch import AckReply, BatchList, BatchState, BatchView, GroupPage, GroupView, group_page_from_json
from .group_binary import MEDIA_TYPE, group_page_from_binary
from .request import BatchRequest

_TASKS = "a list of tasks, which are dicts"


class Batches:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, batch: BatchRequest, *, stop: Optional[Stop] = None) -> BatchView:
        """Starts a batch. A repeated id with the same content changes nothing, and returns the batch as it is."""
        fields = check_dict(batch, "create", "a batch request")
        tasks = {"tasks": check_dicts(fields["tasks"], "create", _TASKS)} if "tasks" in fields else {}
        body = {**fields, **tasks, "id": check_id(fields.get("id") or f"b-{uuid.uuid4()}", "create", "batch")}
        return self._transport.json(Call("POST", "/v1/batches", body=body, stop=stop), BatchView)

    def list(
        self, *, state: Optional[BatchState] = None, series: Optional[str] = None, stop: Optional[Stop] = None
    ) -> Iterator[BatchView]:
        """In the order of creation."""
        after: Optional[str] = None
        while True:
            query = {"state": state, "series": series, "after": after}
            page = self._transport.json(Call("GET", "/v1/batches", query, stop=stop), BatchList)
            yield from page.batches
            after = page.next
            if after is None:
                return

    def get(self, id: str, *, stop: Optional[Stop] = None) -> BatchView:
        return self._transport.json(Call("GET", _path(id, "get"), stop=stop), BatchView)

    def wait(self, id: str, *, stop: Optional[Stop] = None) -> BatchView:
        """Returns when the batch has ended: it met its target, ran out of tasks, or was cancelled."""
        call = Call("GET", _path(id, "wait"), {"wait": POLL_S}, wait_s=POLL_S, stop=stop)
        while True:
            view = self._transport.json(call, BatchView)
            if view.ended:
                return view

    def append_tasks(
        self, id: str, tasks: Sequence[Mapping[str, Any]], *, closed: bool = False, stop: Optional[Stop] = None
    ) -> BatchView:
        """`closed` means that no more tasks follow. A generated key makes the request safe to repeat if a reply is lost."""
        path = f"{_path(id, 'append_tasks')}/tasks"
        body = {"key": str(uuid.uuid4()), "tasks": check_dicts(tasks, "append_tasks", _TASKS), "closed": closed}
        return self._transport.json(Call("POST", path, body=body, stop=stop), BatchView)

    def groups(
        self,
        id: str,
        *,
        consumer: Optional[str] = None,
        after: Optional[int] = None,
        trajectories: bool = True,
        numpy: bool = False,
        ack: bool = True,
        limit: int = 16,
        stop: Optional[Stop] = None,
    ) -> Iterator[GroupView]:
        """Yields each group as it is delivered, until the batch has ended. With a `consumer`, it continues after that consumer's
        last ack, and a group is acknowledged when you ask for the next one; with `ack=False`, only when you call `ack`."""
        path = f"{_path(id, 'groups')}/groups"
        query = {"consumer": consumer, "limit": limit, "wait": POLL_S}

        def read() -> Iterator[GroupView]:
            start = after
            while True:
                page = self._read_page(path, {**query, "after": start}, trajectories, stop)
                for group in page.groups:
                    yield _with_numpy(group) if numpy else group
                    if consumer is not None and ack:
                        self.ack(id, consumer, group.seq, stop=stop)
                if page.state != "open" and not page.groups:
                    return
                start = page.next

        return read()

    def _read_page(self, path: str, query: Query, trajectories: bool, stop: Optional[Stop]) -> GroupPage:
        headers = {"accept": MEDIA_TYPE} if trajectories else {}
        call = Call("GET", path, query, headers=headers, wait_s=POLL_S, stop=stop)
        if trajectories:
            return self._transport.read(call, group_page_from_binary)
        return self._transport.read(call, lambda data: group_page_from_json(json.loads(data)))

    def ack(self, id: str, consumer: str, through: int, *, stop: Optional[Stop] = None) -> AckReply:
        """Confirms that this consumer has safely stored every group up to `through`."""
        body = {"consumer": consumer, "through": through}
        return self._transport.json(Call("POST", f"{_path(id, 'ack')}/ack", body=body, stop=stop), AckReply)

    def resume(self, id: str, *, stop: Optional[Stop] = None) -> BatchView:
        """Ends the pause of a batch whose groups failed without blame on their tasks."""
        return self._transport.json(Call("POST", f"{_path(id, 'resume')}/resume", stop=stop), BatchView)

    def cancel(self, id: str, *, stop: Optional[Stop] = None) -> BatchView:
        """Groups already delivered stay readable."""
        return self._transport.json(Call("DELETE", _path(id, "cancel"), stop=stop), BatchView)


def _path(id: str, call: str) -> str:
    return to_path("/v1/batches/{id}", id=check_id(id, call, "batch"))


def _with_numpy(group: GroupView) -> GroupView:
    if group.trajectories is None:
        return group
    return dataclasses.replace(group, trajectories=tuple(one.to_numpy() for one in group.trajectories))
