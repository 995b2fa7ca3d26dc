"""Stops calls from another thread. Once a Stop is stopped, each call that was given it raises `cancelled` at once: between
attempts, in a long poll, or in a stream."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import Callable, Iterator, Optional

from .error import stopped_error


class Stop:
    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._actions: set[Callable[[], None]] = set()

    @property
    def stopped(self) -> bool:
        return self._event.is_set()

    def stop(self) -> None:
        """Safe from any thread, and more than once."""
        with self._lock:
            self._event.set()
            actions, self._actions = self._actions, set()
        for act in actions:
            act()

    def check(self) -> None:
        if self._event.is_set():
            raise stopped_error()

    def wait(self, seconds: float) -> None:
        """Returns after `seconds`, or raises as soon as it is stopped."""
        if self._event.wait(seconds):
            raise stopped_error()

    def on_stop(self, act: Callable[[], None]) -> Callable[[], None]:
        """Runs `act` when it is stopped, at once if it already is. Returns a function that removes `act` again."""
        with self._lock:
            if not self._event.is_set():
                self._actions.add(act)
                return lambda: self._forget(act)
        act()
        return lambda: None

    def _forget(self, act: Callable[[], None]) -> None:
        with self._lock:
            self._actions.discard(act)


@contextmanager
def joined(*stops: Optional[Stop]) -> Iterator[Stop]:
    """A Stop that is stopped when any of these is."""
    inner = Stop()
    forgets = [one.on_stop(inner.stop) for one in stops if one is not None]
    try:
        yield inner
    finally:
        for forget in forgets:
            forget()


def shut(sock: Optional[socket.socket]) -> None:
    """Closing a socket does not wake a thread that reads from it; shutting it down does."""
    if sock is None:
        return
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # No longer connected, so no thread can be blocked on it.
