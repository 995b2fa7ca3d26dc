"""The LLM server of environments whose policy is the trainer: it speaks vLLM's /v1/completions with token ids, and every call of a rollout
waits until the trainer has acted. One server serves all environments of a process."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Mapping, Optional, Protocol

from millrace import Client


class TextCodec(Protocol):
    """The tokenizer of the service's model; one of `transformers` is of this kind."""

    def encode(self, text: str, *, add_special_tokens: bool) -> Any: ...

    def decode(self, ids: Any, *, skip_special_tokens: bool) -> str: ...


class Call:
    """One turn of a rollout: the ids that the policy sees. `answer` is called once, with the ids that it chose."""

    def __init__(self, prompt_ids: list[int], stop_ids: list[int]) -> None:
        self.prompt_ids = prompt_ids
        self.stop_ids = stop_ids
        self._answered = threading.Event()
        self._ids: Optional[list[int]] = None

    def answer(self, ids: Optional[list[int]]) -> None:
        """None gives the call up: its rollout was cancelled."""
        self._ids = ids
        self._answered.set()

    def wait(self) -> Optional[list[int]]:
        self._answered.wait()
        return self._ids


class Calls:
    """The calls of one rollout, as they arrive."""

    def __init__(self) -> None:
        self._arrived = threading.Condition()
        self._open: Optional[Call] = None
        self._over = False

    def put(self, call: Call) -> None:
        with self._arrived:
            self._open = call
            over = self._over
            self._arrived.notify_all()
        if over:
            call.answer(None)

    def take(self) -> Optional[Call]:
        """The next call, or None when the rollout has ended."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._open is not None or self._over)
            call, self._open = self._open, None
            return call

    def end(self) -> None:
        with self._arrived:
            self._over = True
            call, self._open = self._open, None
            self._arrived.notify_all()
        if call is not None:
            call.answer(None)


class PolicyServer:
    """Joins the service as a backend when it is made, and leaves when it is closed. The service should have no other backend: which one
    samples a rollout is the service's choice."""

    def __init__(self, client: Client, *, host: str = "127.0.0.1", model: str = "trainer") -> None:
        self._client = client
        self._model = model
        self._rollouts: dict[str, Calls] = {}
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer((host, 0), self._make_handler())
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, daemon=True, name="millrace-gem").start()
        self.url = f"http://{host}:{self._http.server_address[1]}"
        self._backend = client.backends.join(self.url, dialect="vllm-completions", model=model)

    def open(self, rollout_id: str) -> Calls:
        calls = Calls()
        with self._lock:
            self._rollouts[rollout_id] = calls
        return calls

    def forget(self, rollout_id: str) -> None:
        with self._lock:
            calls = self._rollouts.pop(rollout_id, None)
        if calls is not None:
            calls.end()

    def close(self) -> None:
        self._client.backends.leave(self._backend.id)
        for one in list(self._rollouts):
            self.forget(one)
        self._http.shutdown()
        self._http.server_close()

    def complete(self, session: str, request: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the body of the reply."""
        prompt = request.get("prompt")
        if not isinstance(prompt, list):
            return 400, {"error": {"message": "prompt must be a list of token ids", "code": 400}}
        with self._lock:
            calls = self._rollouts.get(session)
        if calls is None:
            if session == "probe" or request.get("max_tokens") == 1:
                return 200, _to_reply([prompt[-1] if prompt else 0], self._model)  # A health check samples one token of any kind.
            message = f"rollout {session} is not of a GEM environment of this process: give the environments a service of their own"
            return 400, {"error": {"message": message, "code": 400}}
        call = Call([int(one) for one in prompt], [int(one) for one in request.get("stop_token_ids") or []])
        calls.put(call)
        ids = call.wait()
        if ids is None:
            return 400, {"error": {"message": f"the episode of rollout {session} was given up", "code": 400}}
        return 200, _to_reply(ids, self._model)

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path == "/v1/models":
                    self._send(200, {"object": "list", "data": [{"id": server._model, "object": "model", "owned_by": "vllm"}]})
                else:
                    self._send(200 if self.path == "/health" else 404, {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.path != "/v1/completions":
                    return self._send(404, {})
                self._send(*server.complete(self.headers.get("x-session-id") or "", json.loads(body or b"{}")))

            def _send(self, status: int, body: Mapping[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing: the service logs what fails."""

        return Handler


def _to_reply(ids: list[int], model: str) -> dict[str, Any]:
    """The probabilities are the trainer's: those in the ledger are all 1, and must not be trained on."""
    logprobs = {"tokens": [f"token_id:{one}" for one in ids], "token_logprobs": [0.0] * len(ids), "top_logprobs": None, "text_offset": []}
    choice = {"index": 0, "text": "", "logprobs": logprobs, "finish_reason": "stop"}
    return {"object": "text_completion", "model": model, "choices": [choice], "usage": {"completion_tokens": len(ids)}}
