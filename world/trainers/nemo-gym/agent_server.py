"""Collects rollouts with NeMo Gym's own configuration parser, head server and rollout collection, from an agent server that it did not
start."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from typing import Any

from nemo_gym import global_config
from nemo_gym.base_resources_server import BaseVerifyResponse
from nemo_gym.global_config import GlobalConfigDictParserConfig, get_global_config_dict
from nemo_gym.rollout_collection import RolloutCollectionHelper
from nemo_gym.server_utils import HeadServer, ServerClient
from omegaconf import OmegaConf
from settings_report import choose_values, find_refusals, to_asked

from millrace_trainers.serving import to_sampling
from millrace_trainers.settings import NEMO_GYM

NAME = "millrace"
SETTINGS = choose_values(NEMO_GYM)


def main() -> None:
    given = json.load(sys.stdin)
    port, head_port = free_ports(2)
    command = [sys.executable, "-m", "millrace_trainers.nemo_gym", "--port", str(port), "--tries", "2"]
    with subprocess.Popen(command, stdout=sys.stderr) as server:
        try:
            # Since 0.7, collection reaches an agent only through an environment server.
            config = given["config"] + (given["fronted"] if hasattr(global_config, "ENVIRONMENT_SERVER_TYPE_KEY_NAME") else "")
            start_head(config.replace("9007", str(port)), head_port)
            wait_for(f"http://127.0.0.1:{port}/", server)
            print(json.dumps(asyncio.run(collect(given["tasks"]))))
        finally:
            server.terminate()


def start_head(agent: str, port: int) -> None:
    """`agent` is the part of the configuration that names the agent server, as the documentation has it."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(agent)
        file.flush()
        config = OmegaConf.create({"config_paths": [file.name], "head_server": {"host": "127.0.0.1", "port": port}})
        get_global_config_dict(GlobalConfigDictParserConfig(initial_global_config_dict=config, skip_load_from_cli=True))
    HeadServer.run_webserver()


async def collect(tasks: dict[str, Any]) -> dict[str, Any]:
    rows = [
        {
            **task,
            "kind": kind,
            "agent_ref": {"type": "responses_api_agents", "name": NAME},
            "responses_create_params": {"input": [], **SETTINGS},
        }
        for kind, task in tasks.items()
    ]
    found: dict[str, Any] = {}
    for future in RolloutCollectionHelper().run_examples(rows):
        try:
            row, result = await future
            BaseVerifyResponse.model_validate(result)
            found[row["kind"]] = to_report(result)
        except Exception as error:  # noqa: BLE001 - A failed /run raises whatever the trainer's client makes of it.
            found["failed"] = {"error": type(error).__name__, "content": str(getattr(error, "response_content", error))}
    scored = [{**one["raw"], "_ng_task_index": 0, "_ng_rollout_index": at} for at, one in enumerate(found.values()) if "raw" in one]
    reply = await ServerClient.load_from_global_config().post(NAME, "/aggregate_metrics", json={"verify_responses": scored})
    metrics = await reply.json()
    for one in found.values():
        one.pop("raw", None)
    refused = find_refusals(NEMO_GYM, lambda one: to_sampling(one, NEMO_GYM))
    return {
        "results": found, "metrics": metrics["agent_metrics"],
        "settings": {"asked": to_asked(NEMO_GYM, SETTINGS), "refused": refused},
    }  # fmt: skip


def to_report(result: Any) -> dict[str, Any]:
    turns = [one for one in result["response"]["output"] if one.get("generation_token_ids")]
    return {
        "id": result["rollout_id"],
        "reward": result["reward"],
        "branches": result["branches"],
        "input": [one.get("type") for one in result["responses_create_params"]["input"]],
        "output": [one.get("type") for one in result["response"]["output"]],
        "turns": [
            {"prompt": one["prompt_token_ids"], "completion": one["generation_token_ids"], "logprobs": one["generation_log_probs"]}
            for one in turns
        ],
        "raw": result,
    }


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_for(url: str, server: "subprocess.Popen[bytes]") -> None:
    while server.poll() is None:
        try:
            urllib.request.urlopen(url).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the agent server ended with exit code {server.returncode}")


if __name__ == "__main__":
    main()
