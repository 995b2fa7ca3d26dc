"""A fake service for tests: an HTTP server whose reply is a function of the request, and may be a stream or a closed connection."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Iterable, Mapping, Optional
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    #: The caller's address, which identifies the connection.
    peer: Any


@dataclass(frozen=True)
class Reply:
    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Sent as they are produced instead of a body, after which the connection is closed.
    chunks: Optional[Iterable[bytes]] = None
    #: Close the connection without a reply.
    hang_up: bool = False


def refusal(code: str, status: int, **headers: str) -> Reply:
    error = {"code": code, "message": f"this is {code}", "blame": "service", "retryable": True, "details": {"seen": 1}}
    return Reply({"error": error}, status, headers)


class FakeService:
    def __init__(self, reply_to: Callable[[Received], Reply]) -> None:
        self.reply_to = reply_to
        self.received: list[Received] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def serve(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = self.rfile.read(length)
                parts = urlsplit(self.path)
                headers = {name.lower(): value for name, value in self.headers.items()}
                value = json.loads(body) if body else None
                request = Received(self.command, parts.path, dict(parse_qsl(parts.query)), headers, value, self.client_address)
                service.received.append(request)
                self.reply(service.reply_to(request))

            def reply(self, reply: Reply) -> None:
                if reply.hang_up:
                    self.close_connection = True
                    return
                data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name.replace("_", "-"), value)
                if reply.chunks is None:
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                    return
                self.send_header("connection", "close")
                self.end_headers()
                self.close_connection = True
                for chunk in reply.chunks:
                    self.wfile.write(chunk)

            do_GET = do_POST = do_DELETE = serve

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> FakeService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Server(ThreadingHTTPServer):
    block_on_close = False

    def handle_error(self, *_: Any) -> None:
        """Ignores callers that closed the connection, which tests do on purpose."""
