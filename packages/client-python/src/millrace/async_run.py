"""Runs blocking calls for asyncio, each in a thread. Cancelling the task that awaits a call stops the call and closes its connection."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from typing import AsyncIterator, Callable, Iterator, Optional, TypeVar, Union

from .stop import Stop

T = TypeVar("T")


class _End:
    """Marks the end of an iterator, because StopIteration cannot pass from a thread to a task."""


class AsyncRun:
    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="millrace")

    async def call(self, work: Callable[[Stop], T]) -> T:
        stop = Stop()
        try:
            return await asyncio.wrap_future(self._pool.submit(work, stop))
        except asyncio.CancelledError:
            stop.stop()
            raise

    async def iterate(self, make: Callable[[Stop], Iterator[T]]) -> AsyncIterator[T]:
        stop = Stop()
        iterator = make(stop)
        running: Optional[Future[Union[T, _End]]] = None
        try:
            while True:
                running = self._pool.submit(next, iterator, _End())
                item = await asyncio.wrap_future(running)
                if isinstance(item, _End):
                    return
                yield item
        finally:
            stop.stop()
            self._end(iterator, running)

    def _end(self, iterator: Iterator[T], running: Optional[Future[Union[T, _End]]]) -> None:
        def end() -> None:
            if running is not None and not running.cancelled():
                running.exception()  # An iterator cannot be closed while it runs; a stopped one returns at once.
            close = getattr(iterator, "close", None)
            if close is not None:
                close()

        try:
            self._pool.submit(end)
        except RuntimeError:
            end()  # The client is closed and its pool takes no more work.

    def close(self) -> None:
        self._pool.shutdown(wait=False)
