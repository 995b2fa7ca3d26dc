"""verl's trainer before v1: the agent-loop manager fills a DataProto, which verl joins with its prompts, computes advantages of, and
trains on."""

from __future__ import annotations

import copy
import json
import sys
from types import SimpleNamespace
from typing import Any

import numpy
import torch
import verl
from actor_steps import Actor
from ledger_rows import read_experts, read_ledger
from omegaconf import OmegaConf
from settings_report import VALUES, find_refusals
from tiny_model import open_tokenizer
from verl.checkpoint_engine import base
from verl.protocol import DataProto
from verl.trainer.ppo.core_algos import AdvantageEstimator
from verl.trainer.ppo.ray_trainer import compute_advantage
from verl.utils.import_utils import load_class_from_fqn
from verl.workers.config import CheckpointEngineConfig

from millrace_trainers.settings import VERL_CONFIG
from millrace_trainers.verl import MillraceCheckpointEngineManager
from millrace_trainers.verl.sampling import to_sampling

given = json.load(sys.stdin)
size, prompt_length, response_length = 4, given["prompt_length"], given["response_length"]
names = ("temperature", "top_p", "top_k", "repetition_penalty")
sampling = {name: VALUES[name] for name in names}
config = OmegaConf.create(
    {
        "actor_rollout_ref": {
            "rollout": {
                "prompt_length": prompt_length, "response_length": response_length, "n": size, **sampling, "val_kwargs": sampling,
                "enable_rollout_routing_replay": True,
                "agent": {"num_workers": 1, "agent_loop_manager_class": "millrace_trainers.verl.MillraceAgentLoopManager"},
            },
            "model": {},
        }
    }
)  # fmt: skip
# As verl's trainer does it.
manager_class = load_class_from_fqn(config.actor_rollout_ref.rollout.agent.agent_loop_manager_class, "AgentLoopManager")
manager = manager_class.create(config=config, llm_client=None, teacher_client=None, reward_loop_worker_handles=None)


actor = Actor(open_tokenizer(given["tokenizer"]), size)


def objects(values: list[Any]) -> Any:
    array = numpy.empty(len(values), dtype=object)
    array[:] = values
    return array


def find_experts(batch: Any, index: int, rollout_id: str, length: int) -> bool:
    """Whether the experts of the row are those of the last branch of its rollout, at the places of its tokens."""
    branch = batch.non_tensor_batch["branch"][index]
    start = prompt_length - int(batch.batch["attention_mask"][index][:prompt_length].sum())
    rows = batch.batch["routed_experts"][index][start : start + length - 1].flatten(1).tolist()
    return len(rows) > 0 and rows == read_experts(manager.source.client, rollout_id, branch)[: length - 1]


def step(number: int) -> dict[str, Any]:
    tasks = given["tasks"]
    batch = DataProto.from_dict(
        tensors={"dummy_tensor": torch.zeros(len(tasks), 1)},
        non_tensors={
            "uid": objects([f"step-{number}-prompt-{index}" for index in range(len(tasks))]),
            "raw_prompt": objects([[{"role": "user", "content": task["question"]}] for task in tasks]),
            "extra_info": objects([{"task": task} for task in tasks]),
        },
    ).repeat(repeat_times=size, interleave=True)
    batch.meta_info["global_steps"] = number
    output = manager.generate_sequences(batch)
    batch = batch.union(output)
    batch.batch["token_level_rewards"] = batch.batch["rm_scores"]
    settings = OmegaConf.create({"norm_adv_by_std_in_grpo": True})
    ours = compute_advantage(copy.deepcopy(batch), "millrace_grpo", num_repeat=size, config=settings)
    own = compute_advantage(copy.deepcopy(batch), AdvantageEstimator.GRPO, num_repeat=size, config=settings)
    ledger = read_ledger(manager.source.client, batch.non_tensor_batch["rollout_id"])
    rows = []
    for index, rollout_id in enumerate(batch.non_tensor_batch["rollout_id"]):
        mask = batch.batch["response_mask"][index].bool()
        attended = batch.batch["attention_mask"][index].bool()
        rows.append(
            {
                "rollout_id": rollout_id,
                "reward": ledger[rollout_id]["reward"],
                "score": float(batch.batch["rm_scores"][index].sum()),
                "branches": ledger[rollout_id]["branches"],
                "ids": batch.batch["input_ids"][index][attended].tolist(),
                "sampled": batch.batch["responses"][index][mask].tolist(),
                "logprobs": batch.batch["rollout_log_probs"][index][mask].tolist(),
                "advantages": sorted(set(ours.batch["advantages"][index][mask].tolist())),
                "own": sorted(set(own.batch["advantages"][index][mask].tolist())),
                "steps": [batch.non_tensor_batch[name][index] for name in ("min_global_steps", "max_global_steps")],
                "replays": find_experts(batch, index, rollout_id, int(attended.sum())),
                "acc": float(batch.non_tensor_batch["acc"][index]),
            }
        )
    shape = list(batch.batch["input_ids"].shape)
    return {"rows": rows, "optimised": actor.step(ours.batch), "shape": shape, "keys": batch.meta_info["reward_extra_keys"]}


def sync_weights(global_steps: int) -> dict[str, Any]:
    """verl's own checkpoint manager, for actors next to their engines; the actors are replaced by a look at the gate."""
    seen: list[Any] = []

    def update_weights(**given: Any) -> list[Any]:
        policy = manager.source.client.policy.get()
        seen.append([policy.state, policy.generating, policy.policy_version, given["global_steps"]])
        return []

    base.ray.get = lambda refs: refs
    own = MillraceCheckpointEngineManager(
        config=CheckpointEngineConfig(backend="naive"),
        actor_wg=SimpleNamespace(update_weights=update_weights),
        replicas=[SimpleNamespace(_server_address=given["backend"])],
    )
    own.update_weights(global_steps)
    policy = manager.source.client.policy.get()
    return {"during": seen, "after": [policy.state, policy.policy_version]}


steps = [step(1), step(2)]
manager.rollout_config.response_length = response_length = given["cut_length"]
settings = {
    "asked": {**{name: [name, VALUES[name]] for name in names}, "response_length": ["max_tokens", given["response_length"]]},
    "refused": find_refusals(VERL_CONFIG, lambda one: to_sampling({}, one), open_names=False),
}
report = {"versions": {"verl": verl.__version__}, "settings": settings, "steps": steps, "cut": step(3), "weights": sync_weights(7)}
print(json.dumps(report))
