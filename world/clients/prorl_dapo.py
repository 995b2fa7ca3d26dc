"""The DAPO flow of ProRL Agent's verl client with real aiohttp, written from what it does on the wire. Prints a report as JSON.

usage: prorl_dapo.py SERVICE_URL BACKEND_URL OTHER_BACKEND_URL
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from typing import Any

import aiohttp

TRAJECTORIES = 4
BATCH_SIZE = 2
WORKERS = 6
BATCHES = 3
SAMPLING_PARAMS = {
    "model": "hosted_vllm/Qwen/Qwen3-8B",
    "api_key": "dummy_key",
    "modify_params": False,
    "log_completions": False,
    "native_tool_calling": True,
    "temperature": 1.0,
    "top_p": 1.0,
    "max_iterations": 8,
    "max_output_tokens": 2048,
    "token_level_generation": True,
    "custom_tokenizer": "Qwen/Qwen3-8B",
    "max_model_len": 4096,
    "ensure_thinking_end_properly": False,
}


class Client:
    def __init__(self, url: str) -> None:
        self.url = url
        self.next_prompt = 0
        self.prompts: dict[str, dict[str, Any]] = {}
        self.queue: list[tuple[dict[str, Any], int]] = []
        self.report = {"batches": 0, "filtered": 0, "refills": 0, "cancelled": 0, "retries": 0, "rows": 0, "statuses": []}

    async def post(self, path: str, body: Any = None) -> Any:
        """Its client opens a session for each request, and sends no body where there is none."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            call = session.post(f"{self.url}{path}") if body is None else session.post(f"{self.url}{path}", json=body)
            async with call as response:
                if response.status != 200:
                    raise RuntimeError(f"{path}: HTTP {response.status}: {await response.text()}")
                return await response.json()

    async def swap(self, address: str) -> None:
        await self.post("/clear_llm_server")
        await self.post("/add_llm_server", {"address": address})

    def refill(self) -> None:
        self.report["refills"] += 1
        for _ in range(3):
            index = self.next_prompt
            self.next_prompt += 1
            question = f"What is {index} + 1? Let's think step by step and output the final answer within \\boxed{{}}."
            self.enqueue(
                {
                    "data_source": "deepscaler",
                    "instance_id": f"p{index}",
                    "prompt": json.dumps([{"role": "user", "content": question}]),
                    "reward_model": {"ground_truth": [str(index + 1)]},
                    "extra_info": {"split": "train", "index": index},
                }
            )

    def enqueue(self, prompt: dict[str, Any]) -> None:
        self.prompts[prompt["instance_id"]] = prompt
        for trajectory in range(TRAJECTORIES):
            self.queue.append(({**prompt, "trajectory_id": trajectory}, 0))

    async def run_job(self, instance: dict[str, Any]) -> Any:
        job_id = f"{instance['instance_id']}_{instance['trajectory_id']}_{uuid.uuid4().hex[:8]}"
        session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=1000))
        try:
            body = {"job_id": job_id, "instance": instance, "sampling_params": SAMPLING_PARAMS}
            async with session.post(f"{self.url}/process", headers={"Content-Type": "application/json"}, json=body) as response:
                if response.status != 200:
                    return None
                data = await response.json()
                return data if data["messages"] else None
        except asyncio.CancelledError:
            self.report["cancelled"] += 1
            await self.post("/cancel", {"job_id": job_id})
            raise
        finally:
            await session.close()

    async def sample_batch(self, swap_to: str | None) -> dict[str, list[Any]]:
        await self.post("/start")
        groups: dict[str, dict[int, Any]] = {}
        dropped: set[str] = set()
        enough = asyncio.Event()
        count = 0

        async def work() -> None:
            nonlocal count
            while True:
                if not self.queue:
                    self.refill()
                instance, attempt = self.queue.pop(0)
                result = await self.run_job(instance)
                if result is None and attempt < 2:
                    self.report["retries"] += 1
                    self.queue.append((instance, attempt + 1))
                    continue
                count += 1
                if count == 3 and swap_to is not None:
                    await self.swap(swap_to)
                # Nothing waits from here on: another worker would see the same full group.
                name = instance["instance_id"]
                group = groups.setdefault(name, {})
                group[instance["trajectory_id"]] = result or {"messages": [], "resolved": False}
                solved = sum(1 for one in group.values() if one["resolved"])
                if len(group) == TRAJECTORIES and solved in (0, TRAJECTORIES):
                    del groups[name]
                    dropped.add(name)
                    self.report["filtered"] += 1
                if sum(1 for one in groups.values() if len(one) == TRAJECTORIES) >= BATCH_SIZE:
                    enough.set()

        tasks = [asyncio.create_task(work()) for _ in range(WORKERS)]
        waiting = asyncio.create_task(enough.wait())
        done, _ = await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in done - {waiting}:
            task.result()  # a worker that ended by itself has failed
        kept = [(name, group) for name, group in groups.items() if len(group) == TRAJECTORIES][:BATCH_SIZE]
        left = [prompt for name, prompt in self.prompts.items() if name not in dropped | {name for name, _ in kept}]
        self.queue, self.prompts = [], {}
        for prompt in left:
            self.enqueue(prompt)
        self.report["statuses"].append(await self.status())
        await self.post("/stop")
        return {name: list(group.values()) for name, group in kept}

    async def status(self) -> Any:
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/status") as response:
            return await response.json()


def to_row(result: dict[str, Any]) -> int:
    """What its client trains on. A missing key, or an end that is no assistant message, raises as it does there."""
    messages = result["messages"]
    first = next(i for i, message in enumerate(messages) if message["role"] == "assistant")
    assert first > 0 and messages[-1]["role"] == "assistant"
    ids = [message["token_ids"] for message in messages]
    logprobs = [message["logprobs"] if message["logprobs"] is not None else [0.0] * len(message["token_ids"]) for message in messages]
    response = [token for part in ids[first:] for token in part]
    assert len(response) == sum(len(part) for part in logprobs[first:])
    assert [token for part in ids for token in part] == messages[-1]["input_ids"] + messages[-1]["token_ids"]
    assert json.loads(messages[-1]["tool_calls"][0]["arguments"])["message"]
    assert result["success"] and result["error"] is None and not result["filter"]
    return len(response)


async def main() -> None:
    url, backend, other = sys.argv[1:]
    client = Client(url)
    await client.swap(backend)
    for batch in range(BATCHES):
        groups = await client.sample_batch(other if batch == 1 else None)
        assert len(groups) == BATCH_SIZE
        for results in groups.values():
            assert 0 < sum(1 for one in results if one["resolved"]) < TRAJECTORIES
            for result in results:
                assert to_row(result) > 0
                client.report["rows"] += 1
        client.report["batches"] += 1
        if batch == 0:
            await client.swap(other)
    client.report["aiohttp"] = aiohttp.__version__
    print(json.dumps(client.report))


asyncio.run(main())
