#!/usr/bin/env python3
"""Trains a language model with asynchronous DAPO through Millrace. The service samples groups ahead while this program trains; then
sampling waits at the gate while vLLM loads the new weights in place. Every step is one line of JSON in OUT/steps.jsonl.

    train.py --model smollm2 --task math --steps 150 --out runs/math
    train.py --model smollm2 --cpu --out runs/cpu          # the same program with vLLM on the CPU: two small steps
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import sys
import time
import urllib.request
from contextlib import ExitStack
from typing import Any, Deque, Sequence

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "../../packages/client-python/src")]

import torch  # noqa: E402
from millrace import Client, GroupView  # noqa: E402
from millrace.dapo import group_advantages  # noqa: E402
from millrace.export import to_rows  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

from trainer.cpu_time import CpuTime  # noqa: E402
from trainer.demonstrations import make_demonstrations  # noqa: E402
from trainer.gauge import Gauge  # noqa: E402
from trainer.options import TASKS, read_options  # noqa: E402
from trainer.handover import open_handover  # noqa: E402
from trainer.policy import Clip, Policy, TrainRow  # noqa: E402
from trainer.processes import start_millrace, start_vllm  # noqa: E402
from trainer.retokenise import retokenise  # noqa: E402
from trainer.sharded import ShardedPolicy  # noqa: E402


def main() -> None:
    options = read_options(__doc__)
    os.makedirs(options.out, exist_ok=True)
    torch.manual_seed(options.seed)
    random.seed(options.seed)
    policy = open_policy(options)
    if isinstance(policy, ShardedPolicy) and not policy.is_writer:
        policy.follow()
        return
    with ExitStack() as stack:
        if isinstance(policy, ShardedPolicy):
            stack.callback(policy.end)
        engine = options.engine
        vllm = None
        if engine is None:
            engine = f"http://127.0.0.1:{options.engine_port}"
            log = os.path.join(options.out, "vllm.log")
            names = ("cpu", "api_servers", "cache_gib", "lora", "transfer")
            given = {name: getattr(options, name) for name in names}
            vllm = stack.enter_context(start_vllm(options.model, log=log, port=options.engine_port, **given))
        write_task_file(options)
        config = service_config(options)
        service = stack.enter_context(start_millrace(options.millrace, config, folder=options.out, port=options.port))
        service.wait_ready(120)
        if vllm:
            print(f"vLLM answered after {vllm.wait_ready(900):.0f} s", flush=True)
        client = stack.enter_context(Client(f"http://127.0.0.1:{options.port}"))
        client.backends.join(engine, id="vllm", dialect="vllm", model="smollm2", logprobs_mode="processed")
        Trainer(options, client, policy, engine, service.pid).run()


def open_policy(options: argparse.Namespace) -> Policy:
    """Under torchrun, one that all its processes share; this process is one of them."""
    recipe = {"learning_rate": options.learning_rate, "beta2": options.beta2, "rows_at_once": options.rows_at_once}
    given = {**recipe, "bfloat16": options.bfloat16 or not options.cpu, "lora_rank": options.lora, "tis": options.tis}
    if "WORLD_SIZE" not in os.environ:
        return Policy(options.model, options.device, **given)
    torch.distributed.init_process_group("gloo" if options.cpu else "cuda:nccl,cpu:gloo")
    if not options.cpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    return ShardedPolicy(options.model, options.device, **given)


def write_task_file(options: argparse.Namespace) -> None:
    """The service reads the training tasks from a file; batches continue where the last one stopped."""
    tasks = TASKS[options.task].training(options.seed)
    with open(os.path.join(options.out, "tasks.jsonl"), "w") as file:
        for _ in range(20_000):
            file.write(json.dumps(next(tasks)) + "\n")


def service_config(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "data": os.path.join(options.data or options.out, "store"),
        "model": {"tokenizer": os.path.abspath(options.model)},
        "scenarios": [os.path.join(here, f"{TASKS[options.task].scenario}.ts")],
        "prompts": os.path.join(here, "prompts"),
        "workers": options.workers,
        "pipeline": {
            "runSlots": options.run_slots,
            "initSlots": options.init_slots,
            "readySlots": 2 * options.init_slots,
            "evaluateSlots": 16,
        },
        "sampling": {"taskFiles": {"train": os.path.abspath(os.path.join(options.out, "tasks.jsonl"))}},
        "sandbox": {"warm": {"sandboxes": options.warm_sandboxes, "memoryMiB": 64 * options.warm_sandboxes}},
    }


class Trainer:
    def __init__(self, options: argparse.Namespace, client: Client, policy: Policy, engine: str, service: int) -> None:
        self.options, self.client, self.policy, self.engine = options, client, policy, engine
        self.task_set = TASKS[options.task]
        self.tokenizer = AutoTokenizer.from_pretrained(options.model)
        self.handover = open_handover(options, policy, engine)
        self.gauge = Gauge(engine)
        self.cpu_time = CpuTime(engine_port=options.engine_port, service=service)
        self.version = 0
        self.created = 0
        self.ahead: Deque[str] = collections.deque()
        self.started = time.monotonic()
        self.ended_before = 0.0
        self.log = open(os.path.join(options.out, "steps.jsonl"), "w", buffering=1)
        self.sampling = {"temperature": 1.0, "max_tokens": options.max_tokens}
        self.limits = {"max_turns": self.task_set.max_turns, "max_context_tokens": 1024, "tool_timeout_s": 20}

    def run(self) -> None:
        options = self.options
        self.write({"event": "start", "options": vars(options), "torch": torch.__version__, "gpu": gpu_name()})
        if options.warmup > 0:
            self.warm_up()
        self.sync()  # the engine may still have the weights of an earlier run
        self.evaluate(0)
        self.started = time.monotonic()
        self.gauge.take()
        self.cpu_time.take()
        self.count_rollouts()
        for step in range(1, options.steps + 1):
            self.step(step)
            if step % options.evaluate_every == 0 or step == options.steps:
                self.evaluate(step)
            if options.minutes and time.monotonic() - self.started > 60 * options.minutes:
                print(f"stopped after {options.minutes} minutes", flush=True)
                if step % options.evaluate_every:
                    self.evaluate(step)
                break
        for batch in self.ahead:
            self.client.batches.cancel(batch)
        self.gauge.close()

    def step(self, step: int) -> None:
        options, gauge, began = self.options, self.gauge, time.monotonic()
        self.create_batches(1 if options.synchronous else 1 + options.lookahead)
        batch = self.ahead.popleft()
        groups, rows, changed = self.train_while_collecting(batch)
        view = self.client.batches.get(batch)
        if not options.synchronous:
            self.create_batches(1 + options.lookahead)  # sampled while the weights are handed over
        with gauge.time("train"):
            measured = self.policy.update()
        if rows:
            self.sync()
        seconds = time.monotonic() - began
        ended = self.count_rollouts()
        staleness = [row.staleness for row in rows]
        self.write(
            {
                "event": "step",
                "step": step,
                "wall_s": round(time.monotonic() - self.started, 3),
                "step_s": round(seconds, 3),
                "version": self.version,
                "reward": view.mean_reward,
                "informative_share": view.informative_share,
                "groups": len(groups),
                "groups_judged": sum(view.groups.get(one, 0) for one in ("delivered", "uniform")),
                "batch_state": view.state,
                "carried": view.carried,
                "wasted_rollouts": {name: one.rollouts for name, one in view.wasted.items()},
                "rollouts_per_s": round(ended / seconds, 2),
                "sandboxes_per_s": round(ended / seconds, 2) if self.task_set.has_sandbox else 0,
                "response_tokens": mean([sum(row.mask) for row in rows]),
                "turns": mean([one.result.turns for group in groups for one in group.rollouts if one.result]),
                "staleness_mean": mean(staleness),
                "staleness_max": max(staleness, default=None),
                "retokenised_rows": changed,
                **measured,
                **gauge.take(),
                "cpu_s": self.cpu_time.take(),
            }
        )

    def train_while_collecting(self, batch: str) -> tuple[list[GroupView], list[TrainRow], int]:
        """The groups of a batch with their rows, whose gradients are computed while others are still sampled. With `--synchronous`
        only after the last one has arrived."""
        options, gauge = self.options, self.gauge
        groups: list[GroupView] = []
        rows: list[TrainRow] = []
        waiting: list[TrainRow] = []
        changed = 0
        stream = iter(self.client.batches.groups(batch))
        while True:
            with gauge.time("collect"):
                group = next(stream, None)
            with gauge.time("rows"):
                if group:
                    found = self.to_train_rows(group)
                    again = [retokenise(self.tokenizer, row) for row in found]
                    changed += sum(one is not two for one, two in zip(found, again))
                    if options.retokenise:
                        kept = [one for one, two in zip(again, found) if one is two]
                        new = [one for one, two in zip(again, found) if one is not two and any(one.mask)]
                        found = [*kept, *self.policy.recompute(new)]
                    groups.append(group)
                    rows += found
                    waiting += found
            ready = not options.synchronous and len(waiting) >= options.rows_at_once
            if waiting and (ready or not group):
                with gauge.time("train"):
                    self.policy.add(waiting, clip=Clip())
                    waiting = []
            if not group:
                return groups, rows, changed

    def create_batches(self, count: int) -> None:
        options = self.options
        while len(self.ahead) < count and self.created < options.steps:
            self.created += 1
            view = self.client.batches.create(
                {
                    "id": f"step-{self.created}",
                    "scenario": self.task_set.scenario,
                    "source": {"file": "train", "cursor": "train"},
                    "series": "train",
                    "group_size": options.group_size,
                    "target": options.groups,
                    "max_groups": options.max_groups,
                    "sampling": self.sampling,
                    "limits": self.limits,
                    "informative": {"rule": "rewards-differ"},
                    "surplus": "stop" if options.synchronous else "keep",
                    "max_staleness": options.lookahead + 1,
                    # The batch that is trained first is sampled first; the next ones get the slots that it leaves free.
                    "priority": max(-100, 100 - self.created),
                }
            )
            self.ahead.append(view.id)

    def to_train_rows(self, group: GroupView) -> list[TrainRow]:
        rows = []
        advantages = dict(zip([one.id for one in group.rollouts], group_advantages(group.rewards)))
        for row in to_rows(group, skip_empty=True):
            span = row.policy_versions
            staleness = self.version - (span.first if span else self.version)
            advantage = advantages[row.rollout.id]
            rows.append(TrainRow(row.prompt_ids, row.response_ids, row.response_mask, row.response_logprobs, advantage, staleness))
        return rows

    def sync(self) -> None:
        """Writes the weights while vLLM still samples, if they are written; then everything waits at the gate until it has loaded them. With `--in-place`
        nothing waits: turns in flight go on under the new weights, and new turns share no prefix with the old ones."""
        options, gauge = self.options, self.gauge
        with gauge.time("write"):
            self.handover.prepare(self.version + 1)
        if not options.in_place:
            with gauge.time("pause"):
                self.client.policy.pause()
        with gauge.time("reload"):
            self.handover.load(flush_cache=not options.in_place)
        with gauge.time("resume"):
            self.version += 1
            self.client.policy.resume(self.version, caches_flushed=not options.in_place, adapter=self.handover.adapter)

    def warm_up(self) -> None:
        options = self.options
        source = self.task_set.training(options.seed + 1000)
        tasks = [next(source) for _ in range(options.demonstrations)]
        rows = make_demonstrations(self.client, self.tokenizer, self.task_set, tasks)
        losses = self.policy.warm_up(rows, steps=options.warmup, learning_rate=options.warmup_rate)
        self.write({"event": "warm-up", "steps": options.warmup, "demonstrations": len(rows), "losses": [round(one, 4) for one in losses]})

    def evaluate(self, step: int) -> None:
        """Held-out tasks, by kind. The next batch is sampled meanwhile, but nothing is trained."""
        options, began = self.options, time.monotonic()
        tasks = self.task_set.held_out(options.held_out)
        request = {"id": f"held-out-{step}", "scenario": self.task_set.scenario, "tasks": tasks, "n": options.samples, "weight": 100}
        self.client.evaluations.create({**request, "sampling": self.sampling, "limits": self.limits, "priority": 100})  # type: ignore[typeddict-item]
        with self.gauge.time("evaluate"):
            view = self.client.evaluations.wait(request["id"])
        sums = {kind: [0, 0] for kind in self.task_set.kinds}
        for one in self.client.evaluations.tasks(view.id):
            sums[one.task["kind"]][0] += one.correct
            sums[one.task["kind"]][1] += one.scored
        accuracy = {kind: correct / max(1, scored) for kind, (correct, scored) in sums.items()}
        self.write(
            {
                "event": "held-out",
                "step": step,
                "wall_s": round(time.monotonic() - self.started, 3),
                "seconds": round(time.monotonic() - began, 3),
                "version": self.version,
                "mean": view.mean.value,
                "standard_error": view.mean.standard_error,
                "by_kind": accuracy,
                "samples": {kind: scored for kind, (_, scored) in sums.items()},
                "unscored": view.samples.unscored,
                "stop_reasons": dict(view.stop_reasons),
                "turns": view.turns / max(1, view.samples.scored),
                "said": self.read_texts(view.id),
            }
        )

    def read_texts(self, evaluation: str) -> list[str]:
        """What the policy said, with the tool's results, in one sample of one task of each kind."""
        texts = []
        for one in self.client.evaluations.tasks(evaluation):
            if one.index % max(1, self.options.held_out) == 0 and one.samples and one.samples[0].state == "done":
                segments = self.client.trajectory(one.samples[0].rollout).segments
                first = next((at for at, segment in enumerate(segments) if segment.sampled), len(segments))
                texts.append(self.tokenizer.decode([int(id) for segment in segments[first:] for id in segment.token_ids])[:300])
        return texts[: len(self.task_set.kinds)]

    def count_rollouts(self) -> float:
        """Rollouts that ended since the last call, from the service's own metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.options.port}/metrics", timeout=30) as reply:
            text = reply.read().decode()
        total = sum(float(one) for one in re.findall(r"^millrace_rollouts_ended_total(?:\{.*\})? (\S+)$", text, re.M))
        ended, self.ended_before = total - self.ended_before, total
        return ended

    def write(self, line: dict[str, Any]) -> None:
        self.log.write(json.dumps(line) + "\n")
        shown = {name: line.get(name) for name in ("event", "step", "step_s", "reward", "groups", "mean", "by_kind", "rollouts_per_s", "seconds", "losses")}
        print(json.dumps({name: value for name, value in shown.items() if value is not None}), flush=True)


def mean(values: Sequence[float]) -> Any:
    return sum(values) / len(values) if values else None


def gpu_name() -> Any:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


if __name__ == "__main__":
    main()
