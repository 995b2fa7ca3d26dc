"""Two optimiser steps of TRL's own GRPOTrainer on a tiny random model, with rollouts from Millrace."""

from __future__ import annotations

import json
import sys
import tempfile
from types import SimpleNamespace
from typing import Any

import torch
import trl
from datasets import Dataset
from ledger_rows import read_ledger
from settings_report import choose_values, find_refusals, to_asked
from tiny_model import count_changed, open_model, open_tokenizer, take_weights
from trl import GRPOConfig, GRPOTrainer

from millrace_trainers import RolloutSource
from millrace_trainers.settings import TRL, VLLM
from millrace_trainers.trl import MillraceRollouts, reward_from_rollout
from millrace_trainers.trl.sampling import to_sampling

given = json.load(sys.stdin)
tokenizer = open_tokenizer(given["tokenizer"])
source = RolloutSource(limits={"max_retries": 0})
loads: list[dict[str, Any]] = []


def load_weights(trainer: Any) -> None:
    loads.append({"step": trainer.state.global_step, "generating": source.client.policy.get().generating})


class Observed(MillraceRollouts):
    """Keeps what it returned."""

    outputs: list[dict[str, Any]] = []

    def __call__(self, prompts: Any, trainer: Any) -> dict[str, list[Any]]:
        output = super().__call__(prompts, trainer)
        self.outputs.append(dict(output))
        return output


class ObservedTrainer(GRPOTrainer):
    """Keeps what TRL made of them."""

    batches: list[dict[str, Any]] = []

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        batch = super()._generate_and_score_completions(inputs)
        mask = batch["completion_mask"].bool()
        self.batches.append(
            {
                "advantages": batch["advantages"].flatten().tolist(),
                "completion_ids": [ids[keep].tolist() for ids, keep in zip(batch["completion_ids"], mask)],
                "trained": (batch["tool_mask"] * batch["completion_mask"]).sum(-1).tolist(),
            }
        )
        return batch


settings = choose_values(TRL)
extra = choose_values(VLLM, without=("temperature", "top_p", "top_k", "min_p", "repetition_penalty"))
rollouts = Observed(source, load_weights=load_weights)
model = open_model(tokenizer)
before = take_weights(model)
with tempfile.TemporaryDirectory() as folder:
    config = GRPOConfig(
        output_dir=folder, max_steps=2, per_device_train_batch_size=8, num_generations=4, learning_rate=1e-2, report_to="none",
        use_cpu=True, save_strategy="no", logging_steps=1, disable_tqdm=True, shuffle_dataset=False, generation_kwargs=extra, **settings,
    )  # fmt: skip
    trainer = ObservedTrainer(
        model=model, processing_class=tokenizer, rollout_func=rollouts, reward_funcs=reward_from_rollout, args=config,
        train_dataset=Dataset.from_list(rollouts.to_rows(given["tasks"])),
    )  # fmt: skip
    trainer.train()

steps = []
for output, batch in zip(Observed.outputs, ObservedTrainer.batches):
    views = [source.client.get(one) for one in output["rollout_id"]]
    spans = [view.result.policy_versions for view in views if view.result and view.result.policy_versions]
    steps.append(
        {
            **batch,
            "rewards": [view.reward for view in views],
            "states": [view.state for view in views],
            "returned_ids": output["completion_ids"],
            "returned_masks": output["env_mask"],
            "versions": sorted({span.first for span in spans} | {span.last for span in spans}),
        }
    )
losses = [one["loss"] for one in trainer.state.log_history if "loss" in one]
report = {"versions": {"trl": trl.__version__}, "steps": steps, "loads": loads, "losses": losses, "changed": count_changed(model, before)}
report["settings"] = {
    "asked": {**to_asked(TRL, settings), **to_asked(VLLM, extra, within="generation_kwargs.")},
    "refused": find_refusals(TRL, lambda one: to_sampling(SimpleNamespace(**one)), open_names=False),
}
report["rollouts"] = [output["rollout_id"] for output in Observed.outputs]
report["ledger"] = read_ledger(source.client, [one for output in Observed.outputs for one in output["rollout_id"]])
assert all(torch.isfinite(one).all() for one in model.parameters())
print(json.dumps(report))
