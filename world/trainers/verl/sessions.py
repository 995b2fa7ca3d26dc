"""verl's v1 trainer: its agent-loop worker drives the registered agent loop and puts every output into its queue, its replay buffer filters
groups as DAPO does, and its advantages are computed over rollouts. The queue is a dict instead of TransferQueue, which needs a cluster."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from typing import Any

import numpy
import torch
import verl
from ledger_rows import read_ledger
from omegaconf import OmegaConf
from settings_report import VALUES, choose_values, find_refusals
from tiny_model import open_tokenizer
from verl.protocol import DataProto
from verl.trainer.ppo.core_algos import AdvantageEstimator
from verl.trainer.ppo.v1 import agent_loop_tq, replay_buffer
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories
from verl.utils.dataset.rl_dataset import RLHFDataset

import millrace_trainers.verl  # noqa: F401  Registers the agent loop.
from millrace_trainers.settings import VERL
from millrace_trainers.verl.agent_loop import _open_source
from millrace_trainers.verl.sampling import to_sampling

given = json.load(sys.stdin)
tokenizer = open_tokenizer(given["tokenizer"])
config = OmegaConf.create(
    {
        "actor_rollout_ref": {"rollout": {"prompt_length": 256, "response_length": 64, "n": 4, "agent": {}}},
        "data": {},
    }
)
rows: dict[str, dict[str, Any]] = {}
tags: dict[str, dict[str, Any]] = {}
status: dict[str, str] = {}


class Queue:
    """The calls of TransferQueue that are used here."""

    async def async_kv_put(self, key: str, partition_id: str, tag: dict[str, Any]) -> None:
        status[key] = tag["status"]

    async def async_kv_batch_put(self, keys: list[str], fields: Any, tags: Any, partition_id: str) -> None:
        for index, key in enumerate(keys):
            one = fields[index]
            rows[key] = {name: getattr(one[name], "data", one[name]) if name == "extra_fields" else one[name] for name in one.keys()}
            all_tags[key] = tags[index]

    def kv_batch_get(self, keys: list[str], partition_id: str, select_fields: list[str]) -> dict[str, list[Any]]:
        return {name: [rows[key][name] for key in keys] for name in select_fields}


all_tags = tags
agent_loop_tq.tq = replay_buffer.tq = Queue()  # type: ignore[assignment]
worker_class = agent_loop_tq.AgentLoopWorkerTQ.__ray_metadata__.modified_class
worker = worker_class.__new__(worker_class)
worker.config, worker.llm_client, worker.tokenizer, worker.processor = config, None, tokenizer, None
worker.hf_model_type, worker.dataset_cls, worker.tools, worker.reward_loop_worker_handles = None, RLHFDataset, [], None
worker.distillation_enabled, worker.rollout_config = False, config.actor_rollout_ref.rollout


#: verl passes these by itself; a trainer that is made from it may pass more.
asked = choose_values(VERL, without=("max_tokens",))


async def sample() -> None:
    params = {**asked, "logprobs": True}
    for index, task in enumerate(given["tasks"]):
        prompt = {
            "uid": f"u{index}", "raw_prompt": [{"role": "user", "content": task["question"]}], "extra_info": {"task": task},
            "index": index, "global_steps": 3, "agent_name": "millrace",
        }  # fmt: skip
        await worker._run_prompt(prompt, params, {"step": 3, "sample_index": index, "rollout_n": 0, "validate": False})


asyncio.run(sample())
keys = sorted(rows)
pad = torch.nn.utils.rnn.pad_sequence
data = DataProto.from_dict(
    tensors={
        "response_mask": pad([rows[key]["response_mask"] for key in keys], batch_first=True),
        "token_level_rewards": pad([rows[key]["rm_scores"] for key in keys], batch_first=True),
    },
    non_tensors={"uid": numpy.array([key.split("_")[0] for key in keys], dtype=object)},
)
data = compute_advantage_for_multi_trajectories(data, batch_keys=keys, adv_estimator=AdvantageEstimator.GRPO)

buffer = replay_buffer.ReplayBuffer.__new__(replay_buffer.ReplayBuffer)
buffer.filter_groups_metric = "acc"
buffer._dapo_classification_cache = defaultdict(dict)
buffer.finished_keys = {"train": {uid for uid, state in status.items() if state == "finished"}}
buffer.partitions = {"train": {key: tags[key] for key in keys}}
filtered, counts = buffer._dapo_filtered_keys("train")

source, _pool = _open_source(None)
found = []
for index, key in enumerate(keys):
    row, mask = rows[key], rows[key]["response_mask"].bool()
    rollout_id = row["extra_fields"]["rollout_id"]
    ledger = read_ledger(source.client, [rollout_id])[rollout_id]
    found.append(
        {
            "key": key,
            "rollout_id": rollout_id,
            "reward": ledger["reward"],
            "branches": ledger["branches"],
            "branch": row["extra_fields"]["branch"],
            "ids": row["input_ids"].tolist(),
            "sampled": row["responses"][mask].tolist(),
            "logprobs": row["rollout_log_probs"][mask].tolist(),
            "advantages": sorted(set(data.batch["advantages"][index][: len(mask)][mask].tolist())),
            "tag": {name: tags[key][name] for name in ("global_steps", "min_global_steps", "max_global_steps", "status")},
        }
    )
settings = {
    "asked": {f"sampling_params.{name}": [name, VALUES[name]] for name in asked},
    "refused": find_refusals(VERL, lambda one: to_sampling(one, config.actor_rollout_ref.rollout)),
}
report = {"versions": {"verl": verl.__version__}, "settings": settings, "rows": found, "status": status, "filtered": sorted(filtered)}
print(json.dumps(report))
