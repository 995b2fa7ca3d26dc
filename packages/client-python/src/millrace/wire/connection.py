"""Kept-alive HTTP connections to one address, shared by any number of threads. Each call has a connection to itself."""

from __future__ import annotations

import http.client
import os
import threading
import time
from typing import Callable, Mapping, Optional
from urllib.parse import SplitResult, urlsplit

from ..error import caller_error
from ..stop import Stop, shut

# Shorter than the service's own idle timeout, so that the service rarely closes a connection during a request.
_KEEP_SECONDS = 4.0


class Exchange:
    """One request and its response. Reading or closing it releases the connection for other calls."""

    def __init__(self, response: http.client.HTTPResponse, end: Callable[[bool], None]) -> None:
        self.response = response
        self._end = end

    def read(self) -> bytes:
        reusable = False
        try:
            body = self.response.read()
            reusable = not self.response.will_close
        finally:
            self._end(reusable)
        return body

    def close(self) -> None:
        self._end(False)


class Connections:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None or not _has_valid_port(parts):
            raise caller_error(f"not an http address: {url!r}; it looks like http://127.0.0.1:8007")
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self.prefix = parts.path.rstrip("/")
        self._lock = threading.Lock()
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []
        self._process = os.getpid()

    def open(self, request: Request, stop: Stop) -> Exchange:
        """Sends a request and waits for the response headers. Errors are raised unchanged, with the connection closed."""
        connection = self._take(request.timeout)
        response: Optional[http.client.HTTPResponse] = None
        # Kept here because the connection drops its socket when the response ends with the connection.
        sockets = [connection.sock]
        forget = stop.on_stop(lambda: shut(sockets[0]))

        def end(reusable: bool) -> None:
            forget()
            if reusable and not stop.stopped:
                self._give_back(connection)
                return
            if response is not None:
                response.close()
            connection.close()

        try:
            if connection.sock is None:
                connection.connect()
                sockets[0] = connection.sock
                stop.check()  # A stop during connect() found no socket to shut down.
            connection.sock.settimeout(request.timeout)
            connection.request(request.method, self.prefix + request.target, request.body, dict(request.headers))
            response = connection.getresponse()
        except BaseException:
            end(False)
            raise
        return Exchange(response, end)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _take(self, timeout: float) -> http.client.HTTPConnection:
        with self._lock:
            if self._process != os.getpid():  # After a fork, these connections belong to the parent.
                self._idle, self._process = [], os.getpid()
            while self._idle:
                since, connection = self._idle.pop()
                if time.monotonic() - since < _KEEP_SECONDS:
                    return connection
                connection.close()
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=timeout)

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._idle.append((time.monotonic(), connection))


def _has_valid_port(parts: SplitResult) -> bool:
    try:
        return parts.port is None or parts.port > 0
    except ValueError:
        return False


class Request:
    def __init__(self, method: str, target: str, headers: Mapping[str, str], body: Optional[bytes], timeout: float) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.timeout = timeout
