"""Runs tasks as rLLM's engine for remote agents does: a session of its gateway for each, the runtime, then the traces of the session. The
gateway is rLLM's own, from PyPI; the runtime's types are a stand-in, or rLLM's own from MILLRACE_RLLM_SOURCES."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
import time
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sources = os.environ.get("MILLRACE_RLLM_SOURCES")
if sources:
    sys.path[:0] = [sources, str(Path(sources) / "rllm-model-gateway" / "src")]
else:
    sys.path.insert(0, str(Path(__file__).parent / "stand_in"))

import rllm.engine.remote_runtime as remote_runtime  # noqa: E402
import uvicorn  # noqa: E402
from rllm.engine.remote_runtime.protocol import TaskSubmission  # noqa: E402
from rllm_model_gateway.client import AsyncGatewayClient  # noqa: E402
from rllm_model_gateway.models import GatewayConfig, WorkerConfig  # noqa: E402
from rllm_model_gateway.server import create_app  # noqa: E402

from settings_report import choose_values, to_asked  # noqa: E402

from millrace_trainers.rllm import register  # noqa: E402
from millrace_trainers.settings import VLLM  # noqa: E402

SETTINGS = choose_values(VLLM)

given = json.load(sys.stdin)


def open_gateway() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    config = GatewayConfig(host="127.0.0.1", port=port, store_worker="memory", workers=[WorkerConfig(url=f"{given['backend']}/v1")])
    server = uvicorn.Server(uvicorn.Config(create_app(config), host="127.0.0.1", port=port, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return f"http://127.0.0.1:{port}"


async def run(runtime: Any, gateway: str, task: Any) -> dict[str, Any]:
    client = AsyncGatewayClient(gateway)
    session = str(uuid.uuid4())
    await client.create_session(session_id=session)
    submission = TaskSubmission(task=task, session_id=session, task_id="t", inference_url=f"{gateway}/sessions/{session}/v1")
    (result,) = await runtime.execute_tasks([submission], timeout=120.0)
    await client.flush()
    traces = await client.get_session_traces(session)
    return {
        "id": session,
        "finished": result.finished,
        "reward": result.reward,
        "error": result.error,
        "reason": result.termination_reason.value,
        "turns": [to_turn(one.model_dump() if hasattr(one, "model_dump") else one) for one in traces],
    }


def to_turn(trace: Any) -> dict[str, Any]:
    """The gateway on PyPI reads the ids of a prompt and logprobs only of chat replies; its request has the ids."""
    return {
        "prompt": trace["prompt_token_ids"] or trace["raw_request"]["prompt"],
        "completion": trace["completion_token_ids"],
        "logprobs": trace["logprobs"],
    }


async def main() -> None:
    gateway = open_gateway()
    register(sampling=SETTINGS)
    runtime = remote_runtime.create_remote_runtime(SimpleNamespace(backend="millrace"), model_id="fake")
    runtime.initialize()
    names = list(given["tasks"])
    found = await asyncio.gather(*(run(runtime, gateway, given["tasks"][name]) for name in names))
    runtime.shutdown()
    settings = {"asked": to_asked(VLLM, SETTINGS, within="sampling."), "refused": {}}
    print(json.dumps({"settings": settings, "episodes": dict(zip(names, found))}))


asyncio.run(main())
