"""Runs tasks through verifiers' own client, env server and taskset loader. Prints each episode as the trainer has it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from typing import Any

from verifiers.v1.configs.client import TrainClientConfig
from verifiers.v1.serve import EnvClient
from verifiers.v1.types import SamplingConfig
from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

from settings_report import choose_values, to_asked

from millrace import AsyncClient

from millrace_trainers.settings import VLLM

#: As prime-rl sends it.
SETTINGS = choose_values(VLLM, without=("max_completion_tokens", "max_output_tokens"))
OUTER = {name: SETTINGS[name] for name in ("temperature", "top_p", "max_tokens", "seed")}
INNER = {name: value for name, value in SETTINGS.items() if name not in OUTER}
SAMPLING = {**OUTER, "extra_body": {**INNER, "cache_salt": "7", "return_token_ids": True}}


async def main() -> None:
    given = json.load(sys.stdin)
    command = [sys.executable, "-m", "millrace_trainers.verifiers", "--address", "tcp://127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            client = EnvClient(server.stdout.readline().strip())
            await client.wait_for_server_startup()
            report = await drive(client, given)
            await client.close()
        finally:
            server.terminate()
    print(json.dumps(report))


async def drive(client: EnvClient, given: Any) -> dict[str, Any]:
    endpoint = TrainClientConfig(base_url=f"{given['backend']}/v1")

    async def run(data: dict[str, Any], **sampling: Any) -> Any:
        return await client.run(endpoint, "fake", SamplingConfig(**{**SAMPLING, **sampling}), data)

    tasks = [one.data.model_dump(mode="json") for one in load_tasks(given["tasks"])]
    episodes = await asyncio.gather(*(run(one) for one in tasks))
    routed = await run(tasks[0], extra_body={"routed_experts": True})
    refused = await run(tasks[0], extra_body={"best_of": 4})
    return {
        "episodes": [to_report(one) for one in episodes],
        "routed": to_report(routed),
        "settings": {"asked": {**to_asked(VLLM, OUTER), **to_asked(VLLM, INNER, within="extra_body.")}, "refused": {}},
        "refused": refused.traces[0].errors[0].message,
        "cancelled": await cancel(asyncio.create_task(run({**tasks[0], **given["slow"]}))),
    }


async def cancel(task: "asyncio.Task[Any]") -> str:
    """Returns the id of the rollout whose run was cancelled while the policy was sampling."""
    async with AsyncClient() as service:
        while not (running := [one.id async for one in service.list(state="run")]):
            await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await service.wait(running[0])
        return running[0]


def load_tasks(lines: list[Any]) -> list[Any]:
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(one) + "\n" for one in lines)
        file.flush()
        config = taskset_config_type("millrace_verifiers")(id="millrace_verifiers", tasks=file.name)
        return list(load_taskset(config))


def to_report(episode: Any) -> dict[str, Any]:
    (trace,) = episode.traces
    return {
        "id": trace.info["rollout_id"],
        "ok": episode.ok,
        "reward": None if trace.rewards["millrace"] is None else trace.reward,
        "errors": [one.type for one in trace.errors],
        "roles": [[node.message.role for node in branch.nodes] for branch in trace.branches],
        "finish": [call.finish_reason for call in trace.calls],
        "experts": [None if one.routed_experts is None else list(one.routed_experts.shape) for one in trace.branches],
        "branches": [
            {"ids": one.token_ids, "mask": [int(flag) for flag in one.sampled_mask], "logprobs": one.logprobs} for one in trace.branches
        ],
    }


if __name__ == "__main__":
    asyncio.run(main())
