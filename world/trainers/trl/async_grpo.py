"""Two optimiser steps of TRL's own AsyncGRPOTrainer on a tiny random model, sampled by Millrace while it trains, with weights brought
over at a paused gate."""

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
from settings_report import choose_values, to_asked
from tiny_model import count_changed, open_model, open_tokenizer, take_weights
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer, async_grpo_trainer, packing

from millrace_trainers import RolloutSource
from millrace_trainers.settings import TRL
from millrace_trainers.trl import MillraceRolloutWorker, MillraceWeightTransfer, reward_from_rollout

given = json.load(sys.stdin)
tokenizer = open_tokenizer(given["tokenizer"])
source = RolloutSource(limits={"max_retries": 0})
sent: list[dict[str, Any]] = []


class Recorder:
    """A weight transfer whose engines are fakes: it looks at the gate and at the weights."""

    def init_weight_transfer(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def destroy(self) -> None: ...

    def send_weights(self, iterator: Any) -> None:
        policy = source.client.policy.get()
        total = sum(float(tensor.detach().float().abs().sum()) for _, tensor in iterator)
        sent.append({"state": policy.state, "generating": policy.generating, "version": policy.policy_version, "weights": total})


class Observed(MillraceRolloutWorker):
    """Keeps the samples that it gave to TRL, with the ids of their rollouts."""

    samples: list[dict[str, Any]] = []

    def _to_samples(self, rows: Any, group_id: int) -> list[Any]:
        found = super()._to_samples(rows, group_id)
        trained = [row for row in rows if not row.placeholder] if found else []
        for row, sample in zip(trained, found):
            mask = sample.completion_mask.astype(bool)
            self.samples.append(
                {
                    "rollout_id": row.rollout.id, "branch": row.branch, "group": group_id, "advantage": sample.advantage,
                    "ids": sample.input_ids.tolist(), "sampled": sample.input_ids[mask].tolist(),
                    "logprobs": sample.old_log_probs[mask].tolist(), "version": sample.model_version,
                }
            )  # fmt: skip
        return found


def attend(query: Any, key: Any, value: Any, starts_q: Any, starts_k: Any, *_: Any, softmax_scale: float, **__: Any) -> Any:
    """What TRL takes from a CUDA kernel, in plain PyTorch: causal attention over packed sequences whose ends are aligned."""
    out = torch.empty_like(query)
    repeat = query.shape[1] // key.shape[1]
    for begin_q, end_q, begin_k, end_k in zip(starts_q[:-1], starts_q[1:], starts_k[:-1], starts_k[1:]):
        q = query[begin_q:end_q].transpose(0, 1)
        k, v = (one[begin_k:end_k].repeat_interleave(repeat, dim=1).transpose(0, 1) for one in (key, value))
        rows, columns = q.shape[1], k.shape[1]
        allowed = torch.ones(rows, columns, dtype=torch.bool).tril(diagonal=columns - rows)
        scores = (q @ k.transpose(1, 2) * softmax_scale).masked_fill(~allowed, float("-inf"))
        out[begin_q:end_q] = (scores.softmax(-1) @ v).transpose(0, 1)
    return out


# The two places in which this trainer needs a GPU: its attention kernel, and a look-up of the GPU's speed for a metric.
packing._flash_attn = lambda: SimpleNamespace(flash_attn_varlen_func=attend)  # type: ignore[attr-defined]
async_grpo_trainer.get_peak_flops_per_device = lambda *_: None  # type: ignore[attr-defined]
settings = choose_values(TRL)
with tempfile.TemporaryDirectory() as folder:
    open_model(tokenizer).save_pretrained(f"{folder}/model")
    config = AsyncGRPOConfig(
        output_dir=folder, max_steps=2, per_device_train_batch_size=6, gradient_accumulation_steps=1, num_generations=4,
        learning_rate=1e-2, report_to="none", use_cpu=True, save_strategy="no", logging_steps=1, disable_tqdm=True, bf16=False,
        weight_sync_steps=1, gradient_checkpointing=False, token_budget=0, heartbeat_stale_after_s=240, **settings,
    )  # fmt: skip
    worker = Observed(source, given["tasks"], config, groups=2, buffer=6)
    trainer = AsyncGRPOTrainer(
        model=f"{folder}/model", processing_class=tokenizer, reward_funcs=reward_from_rollout, args=config, rollout_worker=worker,
        weight_transfer=MillraceWeightTransfer(source, Recorder()),
        train_dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": task["question"]}]} for task in given["tasks"]]),
    )  # fmt: skip
    model = trainer.accelerator.unwrap_model(trainer.model)
    before = take_weights(model)
    trainer.train()

assert all(torch.isfinite(one).all() for one in model.parameters())
losses = [one["loss"] for one in trainer.state.log_history if "loss" in one]
staleness = [one["sample/staleness_max"] for one in trainer.state.log_history if "sample/staleness_max" in one]
report = {
    "versions": {"trl": trl.__version__},
    "samples": Observed.samples,
    "sent": sent,
    "steps": trainer.state.global_step,
    "losses": losses,
    "settings": {"asked": to_asked(TRL, settings), "refused": {}},
    "staleness": staleness,
    "changed": count_changed(model, before),
    "ledger": read_ledger(source.client, sorted({one["rollout_id"] for one in Observed.samples})),
}
print(json.dumps(report))
