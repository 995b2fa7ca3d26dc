"""Optimiser steps with verl's own policy loss and log-probabilities, on a tiny model. verl's actor workers are not used: their engines
exist for CUDA, ROCm and NPU only, and verl has no platform for a CPU."""

from __future__ import annotations

from typing import Any

import torch
from tiny_model import count_changed, open_model, take_weights
from verl.trainer.ppo.core_algos import get_policy_loss_fn
from verl.utils.torch_functional import logprobs_from_logits
from verl.workers.config import ActorConfig


class Actor:
    def __init__(self, tokenizer: Any, size: int) -> None:
        self.model = open_model(tokenizer)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.config = ActorConfig(strategy="fsdp2", rollout_n=size, ppo_micro_batch_size_per_gpu=1)

    def step(self, batch: Any) -> dict[str, Any]:
        """`batch` has the advantages. The old log-probabilities are those of the weights before the step."""
        mask = batch["response_mask"]
        before = take_weights(self.model)
        log_probs = self._log_probs(batch)
        loss, metrics = get_policy_loss_fn("vanilla")(
            old_log_prob=log_probs.detach(),
            log_prob=log_probs,
            advantages=batch["advantages"],
            response_mask=mask,
            loss_agg_mode="token-mean",
            config=self.config,
        )
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        after = self._log_probs(batch).detach()
        gain = ((after - log_probs.detach()) * batch["advantages"] * mask).sum() / mask.sum()
        return {
            "loss": float(loss),
            "clipped": float(metrics["actor/pg_clipfrac"]),
            "tokens": int(mask.sum()),
            "changed": count_changed(self.model, before),
            "gain": float(gain),
        }

    def _log_probs(self, batch: Any) -> Any:
        responses = batch["responses"]
        width = responses.shape[1]
        output = self.model(batch["input_ids"], attention_mask=batch["attention_mask"], position_ids=batch["position_ids"])
        return logprobs_from_logits(output.logits[:, -width - 1 : -1], responses)
