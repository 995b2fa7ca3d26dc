"""The connection to the worker: JSON lines over one socket. Threads send; the main thread reads, so that a call never blocks another."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any, Iterator

from .errors import Cancelled, SandboxError


class Connection:
    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(True)
        self._sending = threading.Lock()
        self._asked: dict[int, Asked] = {}
        self._next = 1
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message, allow_nan=False).encode("utf-8") + b"\n"
        with self._sending:
            self._socket.sendall(line)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Ends when the worker is gone."""
        with self._socket.makefile("rb") as reader:
            for line in reader:
                yield json.loads(line)

    def ask(self, call: int, method: str, arguments: dict[str, Any]) -> Any:
        """A request to the worker, on behalf of one of its calls. Raises SandboxError."""
        with self._lock:
            number = self._next
            self._next += 1
            asked = self._asked[number] = Asked(call)
        try:
            self.send({"type": "ask", "id": number, "call": call, "method": method, "args": arguments})
            return asked.wait(number)
        finally:
            with self._lock:
                self._asked.pop(number, None)

    def answer(self, message: dict[str, Any]) -> None:
        with self._lock:
            asked = self._asked.get(message["id"])
        if asked is not None:
            asked.settle(message)

    def cancel(self, call: int) -> None:
        """What the call is waiting for does not come."""
        with self._lock:
            waiting = [asked for asked in self._asked.values() if asked.call == call]
        for asked in waiting:
            asked.settle({"cancelled": True})


class Asked:
    def __init__(self, call: int) -> None:
        self.call = call
        self._done = threading.Event()
        self._message: dict[str, Any] = {}

    def settle(self, message: dict[str, Any]) -> None:
        if not self._done.is_set():
            self._message = message
            self._done.set()

    def wait(self, number: int) -> Any:
        self._done.wait()
        if self._message.get("cancelled"):
            raise Cancelled()
        error = self._message.get("error")
        if error is not None:
            raise SandboxError(error["code"], error["message"], number)
        return self._message.get("value")
