"""Serves the gateway of Agent Lightning 1.0, enqueues rollouts there, lets Millrace run them, and reads their triplets."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

from agentlightning.client import AgentLightningSyncClient
from settings_report import choose_values, to_asked

from millrace_trainers.settings import VLLM

KEY = "gateway-key"
SETTINGS = choose_values(VLLM)


def main() -> None:
    given = json.load(sys.stdin)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    adapter = [sys.executable, "-m", "millrace_trainers.agent_lightning", address]
    server = subprocess.Popen(
        [sys.executable, "-m", "agentlightning.server", "host=127.0.0.1", f"port={port}", f"key={KEY}", f"hydra.run.dir={given['folder']}"],
        stdout=sys.stderr,
    )
    controller = subprocess.Popen([*adapter, "--sampling", json.dumps(SETTINGS)], stdout=sys.stderr, env={**os.environ, "AGL_KEY": KEY})
    try:
        with AgentLightningSyncClient(base_url=address, key=KEY) as client:
            wait_for(client)
            found = run(client, given["tasks"])
    finally:
        for process in (controller, server):
            process.terminate()
            process.wait()
    store = subprocess.run([*adapter, "--store"], capture_output=True, text=True)
    settings = {"asked": to_asked(VLLM, SETTINGS, within="--sampling "), "refused": {}}
    print(json.dumps({"rollouts": found, "store": store.stderr[-2000:], "settings": settings}))


def wait_for(client: Any) -> None:
    for _ in range(1200):
        try:
            if client.get("/healthz").status_code == 200:
                return
        except OSError:
            pass  # It has not started yet.
        except Exception as error:  # noqa: BLE001 - httpx has errors of its own for a refused connection.
            if "onnect" not in type(error).__name__:
                raise
        time.sleep(0.1)
    raise RuntimeError("the gateway did not start")


def run(client: Any, tasks: dict[str, Any]) -> dict[str, Any]:
    created = client.post("/api/rollouts", json=[{"input": task, "rollout_id": kind} for kind, task in tasks.items()])
    created.raise_for_status()
    while client.get("/api/rollouts/terminal").json()["total_terminal"] < len(tasks):
        time.sleep(0.2)
    return {kind: to_report(client, kind) for kind in tasks}


def to_report(client: Any, id: str) -> dict[str, Any]:
    status = client.get(f"/api/rollouts/{id}").json()["rollout"]["status"]
    events = client.get(f"/api/rollouts/{id}/events", params={"format": "triplet"}).json()
    calls = [one["data"] for one in events if one["event_type"] == "model_request"]
    return {
        "state": status["state"],
        "error": status["error_message"],
        "rewards": [one["data"]["value"] for one in events if one["event_type"] == "reward"],
        "turns": [
            {"prompt": one["prompt_token_ids"], "completion": one["response_token_ids"], "logprobs": one["response_log_probs"]}
            for one in calls
        ],
    }


if __name__ == "__main__":
    main()
