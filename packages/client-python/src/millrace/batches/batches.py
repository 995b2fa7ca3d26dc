"""Batches of the service, and the groups that they deliver: each group once for a consumer that acknowledges, whatever dies in between."""

from __future__ import annotations

import dataclasses
import json
import uuid
from typing import Any, Iterator, Mapping, Optional, Sequence

from ..rollouts.submit import to_id
from ..stop import Stop
from ..wire.transport import POLL_S, Call, Query, Transport, to_path
from .batch import AckReply, BatchList, BatchView, GroupPage, GroupView, group_page_from_json
from .group_binary import MEDIA_TYPE, group_page_from_binary


class Batches:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, batch: Mapping[str, Any], *, stop: Optional[Stop] = None) -> BatchView:
        """`batch` is the protocol's: scenario, group_size, target, tasks or source, and more. Its id makes this idempotent."""
        body = {**batch, "id": to_id(batch.get("id") or f"b-{uuid.uuid4()}")}
        return self._transport.json(Call("POST", "/v1/batches", body=body, stop=stop), BatchView)

    def list(
        self, *, state: Optional[str] = None, series: Optional[str] = None, stop: Optional[Stop] = None
    ) -> Iterator[BatchView]:
        after: Optional[str] = None
        while True:
            query = {"state": state, "series": series, "after": after}
            page = self._transport.json(Call("GET", "/v1/batches", query, stop=stop), BatchList)
            yield from page.batches
            after = page.next
            if after is None:
                return

    def get(self, id: str, *, stop: Optional[Stop] = None) -> BatchView:
        return self._transport.json(Call("GET", _one(id), stop=stop), BatchView)

    def wait(self, id: str, *, stop: Optional[Stop] = None) -> BatchView:
        """Comes back when the batch has ended: its target met, its tasks at an end, or cancelled."""
        while True:
            view = self._transport.json(Call("GET", _one(id), {"wait": POLL_S}, wait_s=POLL_S, stop=stop), BatchView)
            if view.ended:
                return view

    def append_tasks(
        self, id: str, tasks: Sequence[Mapping[str, Any]], *, closed: bool = False, stop: Optional[Stop] = None
    ) -> BatchView:
        """`closed` says that these were the last. A key makes it safe to send it again when an answer was lost."""
        body = {"key": str(uuid.uuid4()), "tasks": list(tasks), "closed": closed}
        return self._transport.json(Call("POST", f"{_one(id)}/tasks", body=body, stop=stop), BatchView)

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
        """Each group as it is delivered, until the batch has ended. With a `consumer` it goes on after that consumer's last ack,
        and a group is acknowledged when the next one is asked for; with `ack=False` by whoever calls `ack`."""
        query = {"consumer": consumer, "limit": limit, "wait": POLL_S}
        while True:
            page = self._read_page(id, {**query, "after": after}, trajectories, stop)
            for group in page.groups:
                yield _with_numpy(group) if numpy else group
                if consumer is not None and ack:
                    self.ack(id, consumer, group.seq, stop=stop)
            if page.state != "open" and not page.groups:
                return
            after = page.next

    def _read_page(self, id: str, query: Query, trajectories: bool, stop: Optional[Stop]) -> GroupPage:
        headers = {"accept": MEDIA_TYPE} if trajectories else {}
        call = Call("GET", f"{_one(id)}/groups", query, headers=headers, wait_s=POLL_S, stop=stop)
        if trajectories:
            return self._transport.read(call, group_page_from_binary)
        return self._transport.read(call, lambda data: group_page_from_json(json.loads(data)))

    def ack(self, id: str, consumer: str, through: int, *, stop: Optional[Stop] = None) -> AckReply:
        """This consumer has safely stored every group up to `through`."""
        body = {"consumer": consumer, "through": through}
        return self._transport.json(Call("POST", f"{_one(id)}/ack", body=body, stop=stop), AckReply)

    def cancel(self, id: str, *, stop: Optional[Stop] = None) -> BatchView:
        """Groups delivered before stay readable."""
        return self._transport.json(Call("DELETE", _one(id), stop=stop), BatchView)


def _one(id: str) -> str:
    return to_path("/v1/batches/{id}", id=id)


def _with_numpy(group: GroupView) -> GroupView:
    if group.trajectories is None:
        return group
    return dataclasses.replace(group, trajectories=tuple(one.to_numpy() for one in group.trajectories))
