"""A fake service for tests: an HTTP server whose answers are a function of the request, which also may hang up or stream."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Iterable, Mapping, Optional
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    #: The caller's address, which tells connections apart.
    peer: Any


@dataclass(frozen=True)
class Reply:
    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Sent as they come, in place of a body; the connection is closed after them.
    chunks: Optional[Iterable[bytes]] = None
    #: Nothing is answered, and the connection is closed.
    hang_up: bool = False


def refusal(code: str, status: int, **headers: str) -> Reply:
    error = {"code": code, "message": f"this is {code}", "blame": "service", "retryable": True, "details": {"seen": 1}}
    return Reply({"error": error}, status, headers)


class FakeService:
    def __init__(self, answer: Callable[[Asked], Reply]) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
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
                asked = Asked(self.command, parts.path, dict(parse_qsl(parts.query)), headers, value, self.client_address)
                service.asked.append(asked)
                self.reply(service.answer(asked))

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
        """A caller that hung up is no error here."""
