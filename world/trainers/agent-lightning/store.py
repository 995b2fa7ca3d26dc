"""Serves Agent Lightning's own store, enqueues rollouts there, lets Millrace run them, and reads them through both of its adapters."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # Importing it would otherwise fetch a list of prices.

import agentlightning as agl
from agentlightning.adapter import LlmProxyTraceToTriplet, TracerTraceToTriplet
from agentlightning.emitter.reward import find_final_reward
from agentlightning.store.client_server import LightningStoreServer
from agentlightning.store.memory import InMemoryLightningStore
from agentlightning.tracer import OtelTracer

from settings_report import choose_values, to_asked

from millrace_trainers.agent_lightning.store import MillraceAgent
from millrace_trainers.settings import VLLM

SETTINGS = choose_values(VLLM)


async def main() -> None:
    given = json.load(sys.stdin)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    memory = InMemoryLightningStore()
    store = LightningStoreServer(memory, host="127.0.0.1", port=port, launch_mode="asyncio")
    await store.start()
    command = [sys.executable, "-m", "millrace_trainers.agent_lightning", f"http://127.0.0.1:{port}", "--store"]
    runner = subprocess.Popen(command, stdout=sys.stderr)
    try:
        report = {"rollouts": await run_in_store(store, given["tasks"]), "step": await run_one_step(given["tasks"]["right"])}
        report["settings"] = {"asked": to_asked(VLLM, SETTINGS), "refused": {}}
    finally:
        runner.terminate()
        runner.wait()
        await store.stop()
    print(json.dumps(report))


async def run_in_store(store: Any, tasks: dict[str, Any]) -> dict[str, Any]:
    llm = agl.LLM(endpoint="http://127.0.0.1:1/v1", model="fake", sampling_parameters=SETTINGS)
    await store.add_resources({"main_llm": llm})
    ids = {kind: (await store.enqueue_rollout(task, mode="train")).rollout_id for kind, task in tasks.items()}
    ended = {one.rollout_id: one for one in await store.wait_for_rollouts(rollout_ids=list(ids.values()), timeout=600)}
    return {kind: to_report(ended[id], await store.query_spans(id)) for kind, id in ids.items()}


async def run_one_step(task: Any) -> dict[str, Any]:
    """The runner of its trainer with our agent."""
    store = InMemoryLightningStore()
    await store.add_resources({"main_llm": agl.LLM(endpoint="http://127.0.0.1:1/v1", model="fake", sampling_parameters={})})
    runner: Any = agl.LitAgentRunner(tracer=OtelTracer())
    with runner.run_context(agent=MillraceAgent(), store=store):
        rollout = await runner.step(task, mode="train")
    return to_report(rollout, await store.query_spans(rollout.rollout_id))


def to_report(rollout: Any, spans: Any) -> dict[str, Any]:
    # The adapter for tracers raises without spans, so its trainer skips such a rollout.
    traced = TracerTraceToTriplet().adapt(list(spans)) if spans else []
    proxied = LlmProxyTraceToTriplet().adapt(list(spans))
    return {
        "status": rollout.status,
        "reward": find_final_reward(list(spans)),
        "id": traced[0].metadata["response_id"].split(":")[0] if traced else None,
        "turns": [
            {
                "prompt": one.prompt["token_ids"],
                "completion": one.response["token_ids"],
                "logprobs": [token["logprob"] for token in one.response["logprobs"]],
            }
            for one in traced
        ],
        "proxied": [{"prompt": one.prompt["token_ids"], "completion": one.response["token_ids"]} for one in proxied],
        "rewards": [[one.reward for one in some] for some in (traced, proxied)],
    }


if __name__ == "__main__":
    asyncio.run(main())
