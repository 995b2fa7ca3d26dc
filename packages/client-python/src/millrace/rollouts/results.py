"""Rollouts as they end, many at once over one connection: the event log says which ended, and each is read once. What the log
cannot tell (it ended before, or while the log was away) is found by asking for it."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Callable, Iterator, Optional, Sequence, Union

from ..service.event_stream import read_events
from ..stop import Stop, joined
from ..wire.transport import Transport
from .rollout import RolloutView

_READS_AT_ONCE = 16

Get = Callable[[str, Stop], RolloutView]


def follow_results(
    transport: Transport, get: Get, ids: Sequence[str], *, after: int, check_first: bool, stop: Optional[Stop]
) -> Iterator[RolloutView]:
    """Each of `ids` once, in the order of ending; ends when all have. `after` is an event id from before any of them could have
    ended, or from before they are asked for by `check_first`."""
    pending = set(ids)
    # Never longer than there are ids and breaks of the log, so it needs no bound.
    reads: SimpleQueue[Union[Future[RolloutView], BaseException]] = SimpleQueue()
    with joined(stop) as inner:
        pool = ThreadPoolExecutor(_READS_AT_ONCE, thread_name_prefix="millrace-results")

        def read(some: Sequence[str]) -> None:
            for one in some:
                reads.put(pool.submit(get, one, inner))

        def follow() -> None:
            try:
                if check_first:
                    read(ids)
                for event in read_events(transport, after, inner, on_resume=lambda: read([one for one in ids if one in pending])):
                    if event.kind == "rollout-end" and event.rollout_id is not None and event.rollout_id in pending:
                        read([event.rollout_id])
            except BaseException as error:
                reads.put(error)

        follower = threading.Thread(target=follow, name="millrace-events", daemon=True)
        follower.start()
        try:
            while pending:
                taken = reads.get()
                if isinstance(taken, BaseException):
                    raise taken
                view = taken.result()
                if view.ended and view.id in pending:
                    pending.discard(view.id)
                    yield view
        finally:
            inner.stop()
            follower.join()
            pool.shutdown(wait=True)
