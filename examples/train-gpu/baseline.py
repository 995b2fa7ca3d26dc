#!/usr/bin/env python3
"""The training of train.py without a service: ask vLLM for every group, drop the uniform ones, update, load the weights, repeat. It shows
what the service costs, saves and changes. Arithmetic only; it takes the options of train.py, and `--groups` questions a step.

    baseline.py --model smollm2 --engine http://127.0.0.1:8100 --groups 40 --steps 150 --out runs/baseline
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "../../packages/client-python/src")]

import torch  # noqa: E402
from millrace.dapo import group_advantages, is_informative  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

from trainer.arithmetic import ARITHMETIC  # noqa: E402
from trainer.cpu_time import CpuTime  # noqa: E402
from trainer.demonstrations import to_row  # noqa: E402
from trainer.gauge import Gauge  # noqa: E402
from trainer.options import read_options  # noqa: E402
from trainer.policy import Clip, Policy, TrainRow  # noqa: E402
from trainer.processes import load_weights, post  # noqa: E402
from trainer.task_set import Task  # noqa: E402

Sample = tuple[TrainRow, float]


class Baseline:
    def __init__(self) -> None:
        self.options = options = read_options(__doc__)
        if not options.engine or options.task != "math" or options.lora or options.transfer != "file":
            sys.exit("baseline.py: needs --engine, and knows --task math and whole weights in files only")
        os.makedirs(options.out, exist_ok=True)
        torch.manual_seed(options.seed)
        random.seed(options.seed)
        self.tokenizer = AutoTokenizer.from_pretrained(options.model)
        recipe = {"learning_rate": options.learning_rate, "beta2": options.beta2, "rows_at_once": options.rows_at_once}
        self.policy = Policy(options.model, options.device, **recipe, bfloat16=options.bfloat16 or not options.cpu, tis=options.tis)
        self.gauge = Gauge(options.engine)
        self.cpu_time = CpuTime(engine_port=options.engine_port)
        self.calls = ThreadPoolExecutor(64)
        self.log = open(os.path.join(options.out, "steps.jsonl"), "w", buffering=1)

    def run(self) -> None:
        options = self.options
        self.write({"event": "start", "options": vars(options)})
        if options.warmup > 0:
            self.warm_up()
        self.sync()
        self.started = time.monotonic()
        self.evaluate(0)
        self.gauge.take()
        self.cpu_time.take()
        questions = ARITHMETIC.training(options.seed)
        for step in range(1, options.steps + 1):
            self.step(step, [next(questions) for _ in range(options.groups)])
            late = bool(options.minutes) and time.monotonic() - self.started > 60 * options.minutes
            if late or step % options.evaluate_every == 0 or step == options.steps:
                self.evaluate(step)
            if late:
                break
        self.gauge.close()

    def step(self, step: int, tasks: list[Task]) -> None:
        began, gauge, size = time.monotonic(), self.gauge, self.options.group_size
        with gauge.time("collect"):
            groups = list(self.calls.map(lambda task: self.sample(task, size), tasks))
        kept = [group for group in groups if is_informative([reward for _, reward in group])]
        rows = [
            replace(row, advantage=advantage)
            for group in kept
            for (row, _), advantage in zip(group, group_advantages([reward for _, reward in group]))
        ]
        with gauge.time("train"):
            if rows:
                self.policy.add(rows, clip=Clip())
            measured = self.policy.update()
        if rows:
            self.sync()
        seconds = time.monotonic() - began
        rewards = [reward for group in groups for _, reward in group]
        self.write(
            {
                "event": "step",
                "step": step,
                "wall_s": round(time.monotonic() - self.started, 3),
                "step_s": round(seconds, 3),
                "reward": sum(rewards) / len(rewards),
                "informative_share": len(kept) / len(groups),
                "groups": len(kept),
                "groups_judged": len(groups),
                "rollouts_per_s": round(len(rewards) / seconds, 2),
                "response_tokens": sum(len(row.response_ids) for row in rows) / max(1, len(rows)),
                **measured,
                **gauge.take(),
                "cpu_s": self.cpu_time.take(),
            }
        )

    def sample(self, task: Task, count: int) -> list[Sample]:
        options = self.options
        prompt = self.prompt_of(task)
        body = {"model": "smollm2", "prompt": prompt, "n": count, "max_tokens": options.max_tokens, "temperature": 1.0}
        reply = json.loads(post(f"{options.engine}/v1/completions", {**body, "logprobs": 0, "return_token_ids": True}))
        samples = []
        for choice in reply["choices"]:
            ids, recorded = choice["token_ids"], choice["logprobs"]["token_logprobs"]
            samples.append((TrainRow(prompt, ids, [1] * len(ids), recorded, 0.0, 0), reward_of(task, choice["text"])))
        return samples

    def prompt_of(self, task: Task) -> list[int]:
        messages = [{"role": "user", "content": task["question"]}]
        text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def sync(self) -> None:
        options, gauge = self.options, self.gauge
        folder = os.path.join(options.weights or options.out, "weights")
        with gauge.time("write"):
            self.policy.write(folder, torch.float32 if options.cpu else torch.bfloat16)
        with gauge.time("reload"):
            load_weights(options.engine, folder, flush_cache=True)

    def warm_up(self) -> None:
        options, questions = self.options, ARITHMETIC.training(self.options.seed + 1000)
        tasks = [next(questions) for _ in range(options.demonstrations)]
        rows = [to_row(self.tokenizer, self.prompt_of(task), ARITHMETIC.demonstrate(task)) for task in tasks]
        self.policy.warm_up(rows, steps=options.warmup, learning_rate=options.warmup_rate)

    def evaluate(self, step: int) -> None:
        options, began = self.options, time.monotonic()
        tasks = ARITHMETIC.held_out(options.held_out)
        with self.gauge.time("evaluate"):
            found = list(self.calls.map(lambda task: [reward for _, reward in self.sample(task, options.samples)], tasks))
        rewards: dict[str, list[float]] = {kind: [] for kind in ARITHMETIC.kinds}
        for task, some in zip(tasks, found):
            rewards[task["kind"]] += some
        line = {"event": "held-out", "step": step, "wall_s": round(time.monotonic() - self.started, 3), "seconds": round(time.monotonic() - began, 3)}
        every = [one for some in rewards.values() for one in some]
        self.write({**line, "mean": sum(every) / len(every), "by_kind": {kind: sum(some) / len(some) for kind, some in rewards.items()}})

    def write(self, line: dict[str, Any]) -> None:
        self.log.write(json.dumps(line) + "\n")
        names = ("event", "step", "step_s", "reward", "groups", "mean", "by_kind")
        print(json.dumps({name: line[name] for name in names if name in line}), flush=True)


def reward_of(task: Task, text: str) -> float:
    """As arithmetic.ts does it."""
    given = re.findall(r"\\boxed\{\s*(-?\d{1,12})\s*\}", text)
    return float(bool(given) and int(given[-1]) == task["answer"])


if __name__ == "__main__":
    Baseline().run()
