"""Rollouts as they finish, any number over one connection. The event log says which rollouts finished, and each is read once.
Rollouts that finished before the log was opened, or during a break of it, are found by reading them directly."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Callable, Iterator, Optional, Sequence, Union

from ..service.event_stream import read_events
from ..stop import Stop, joined
from ..wire.transport import Transport
from .rollout import RolloutView

_CONCURRENT_READS = 16

Get = Callable[[str, Stop], RolloutView]


def follow_results(
    transport: Transport, get: Get, ids: Sequence[str], *, after: int, check_first: bool, stop: Optional[Stop]
) -> Iterator[RolloutView]:
    """Yields each of `ids` once, in the order in which they finish. `after` is an event id from before any of them could have
    finished; if there is none, `check_first` reads each of them once at the start."""
    pending = set(ids)
    # Bounded by the number of ids and breaks of the log, so it needs no limit.
    reads: SimpleQueue[Union[Future[RolloutView], BaseException]] = SimpleQueue()
    with joined(stop) as inner:
        pool = ThreadPoolExecutor(_CONCURRENT_READS, thread_name_prefix="millrace-results")

        def read(some: Sequence[str]) -> None:
            for one in some:
                reads.put(pool.submit(get, one, inner))

        def read_pending() -> None:
            read([one for one in ids if one in pending])

        def follow() -> None:
            try:
                if check_first:
                    read(ids)
                for event in read_events(transport, after, inner, on_resume=read_pending, skip_gone=True):
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
