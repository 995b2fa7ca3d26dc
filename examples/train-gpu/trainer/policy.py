"""The policy in PyTorch: log-probabilities of rows of tokens, one DAPO update, one supervised update, and its weights as a file or as an
adapter."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace
from typing import Any, Iterable, Iterator, Optional, Sequence

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import nn
from transformers import AutoModelForCausalLM

from .adapter import adapter_weights, add_adapter, full, write_adapter


@dataclass(frozen=True)
class TrainRow:
    """One branch of a trajectory. `mask`, `recorded` and `advantage` are for the tokens after the prompt."""

    prompt_ids: list[int]
    response_ids: list[int]
    mask: list[int]
    recorded: list[float]
    advantage: float
    #: How many policy versions its first token is behind the weights that are trained.
    staleness: int

    @property
    def length(self) -> int:
        return len(self.prompt_ids) + len(self.response_ids)


@dataclass(frozen=True)
class Clip:
    low: float = 0.2
    high: float = 0.28


class Scorer(nn.Module):
    """The model with one way through it: the logits of chosen tokens. A full row of 49,152 numbers for each token is most of the memory."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, at_row: torch.Tensor, at_token: torch.Tensor) -> torch.Tensor:
        # Attention is causal and padding is on the right, so no token sees padding.
        hidden = self.model.model(input_ids=ids, use_cache=False).last_hidden_state
        return self.model.lm_head(hidden[at_row, at_token - 1]).float()


class Policy:
    #: How many processes share each update; the gradient is their mean.
    world = 1

    def __init__(
        self,
        folder: str,
        device: str,
        *,
        learning_rate: float,
        beta2: float,
        rows_at_once: int,
        bfloat16: bool = True,
        lora_rank: int = 0,
        tis: Optional[float] = None,
    ) -> None:
        self.device, self.folder = device, folder
        self.rows_at_once = rows_at_once
        self.bfloat16 = bfloat16
        self.lora_rank, self.tis = lora_rank, tis
        # Weights and optimizer in float32; matrix products in bfloat16, or in float32 where the engine computes in float32 too.
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").to(device)
        self.model.config.use_cache = False
        if lora_rank > 0:
            add_adapter(self.model, lora_rank)
        elif device == "cpu" and self.is_tied:
            # On a CPU, vLLM 0.32 keeps the output layer that it packed at its start, if that is the embedding.
            self.model.get_input_embeddings().weight.requires_grad_(False)
        self.scorer = self.place(Scorer(self.model))
        self._seen = Measures()
        trained = [one for one in self.model.parameters() if one.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=learning_rate, betas=(0.9, beta2), weight_decay=0.0)

    @property
    def is_tied(self) -> bool:
        """Whether the output layer is the embedding."""
        return self.model.get_output_embeddings().weight is self.model.get_input_embeddings().weight

    def place(self, scorer: Scorer) -> Scorer:
        """Before the optimizer is made: where its parameters are."""
        return scorer

    def share(self, rows: Sequence[TrainRow]) -> Sequence[TrainRow]:
        """The rows that this process computes."""
        return rows

    def logprobs(self, rows: Sequence[TrainRow]) -> tuple[torch.Tensor, torch.Tensor]:
        """The log-probability and the entropy at every trainable token of the rows, in their order."""
        width = max(row.length for row in rows)
        ids = torch.zeros((len(rows), width), dtype=torch.long)
        at_row: list[int] = []
        at_token: list[int] = []
        for index, row in enumerate(rows):
            ids[index, : row.length] = torch.tensor(row.prompt_ids + row.response_ids)
            start = len(row.prompt_ids)
            positions = [start + offset for offset, one in enumerate(row.mask) if one]
            at_row += [index] * len(positions)
            at_token += positions
        ids = ids.to(self.device)
        where = torch.tensor(at_row, device=self.device), torch.tensor(at_token, device=self.device)
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.bfloat16):
            logits = self.scorer(ids, *where)
        normalizer = torch.logsumexp(logits, dim=-1)
        chosen = logits.gather(-1, ids[where][:, None])[:, 0]
        with torch.no_grad():
            entropy = normalizer - (torch.softmax(logits, dim=-1) * logits).sum(-1)
        return chosen - normalizer, entropy

    def add(self, rows: Sequence[TrainRow], *, clip: Clip) -> None:
        """Adds the gradient of these rows to the update, summed over tokens. A trainer may call it while it still waits for other rows, and
        the rows of one call go through the model in parts: the sum is the same."""
        for part in _parts(self.share(rows), self.rows_at_once):
            logprobs, entropy = self.logprobs(part)
            counts = torch.tensor([sum(row.mask) for row in part], device=self.device)
            recorded = _flat((row.recorded, row.mask) for row in part).to(self.device)
            advantages = torch.tensor([row.advantage for row in part], device=self.device).repeat_interleave(counts)
            stale = torch.tensor([row.staleness for row in part], device=self.device).repeat_interleave(counts)
            ratio = torch.exp(logprobs - recorded)
            gain, is_cut = self.gain(logprobs, ratio, advantages, clip)
            loss = -gain.sum()
            loss.backward()
            self._seen.add(loss=loss, ratio=ratio, clipped=is_cut, entropy=entropy)
            self._seen.mismatch((logprobs - recorded)[stale == 0])
        if self.device == "cuda":
            torch.cuda.synchronize()  # so that the time of this call is the time of the work

    def gain(
        self, logprobs: torch.Tensor, ratio: torch.Tensor, advantages: torch.Tensor, clip: Clip
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What each token adds to the objective, and whether its ratio was cut. DAPO with clip-higher: the ratio is clipped, and a token
        beyond the clip has no gradient. With `tis`, truncated importance sampling: each token counts by how much likelier it is here than
        where it was sampled, by the engine and by older weights, at most `tis` times, and none loses its gradient."""
        if self.tis is not None:
            weights = ratio.detach().clamp(max=self.tis)
            return weights * advantages * torch.exp(logprobs - logprobs.detach()), ratio > self.tis
        clipped = torch.clamp(ratio, 1 - clip.low, 1 + clip.high)
        return torch.minimum(ratio * advantages, clipped * advantages), ratio * advantages > clipped * advantages

    def update(self) -> dict[str, Any]:
        """The optimizer step for all rows that were added: the mean over their tokens. Returns what was measured on the way."""
        if not self._seen.parts:
            return {}
        measured, self._seen = self._seen.report(), Measures()
        for one in self.model.parameters():
            if one.grad is not None:
                one.grad *= self.world / measured["tokens"]
        return {**measured, **self._step()}

    def recompute(self, rows: Sequence[TrainRow]) -> list[TrainRow]:
        """The same rows, with the log-probabilities of the present weights as the recorded ones."""
        found = []
        for part in _parts(rows, self.rows_at_once):
            with torch.no_grad():
                values = iter(self.logprobs(part)[0].tolist())
            found += [replace(row, recorded=[next(values) if one else 0.0 for one in row.mask]) for row in part]
        return found

    def warm_up(self, rows: Sequence[TrainRow], *, steps: int, learning_rate: float) -> list[float]:
        """Supervised steps with a learning rate of their own. Returns the loss before each."""
        usual = [group["lr"] for group in self.optimizer.param_groups]
        self._set_rates([learning_rate] * len(usual))
        losses = [self.imitate(random.sample(rows, min(64, len(rows)))) for _ in range(steps)]
        self._set_rates(usual)
        return losses

    def _set_rates(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate

    def imitate(self, rows: Sequence[TrainRow]) -> float:
        """One supervised step on the masked tokens of the rows. Returns the loss per token before it."""
        tokens, total = sum(sum(row.mask) for row in rows), 0.0
        for part in _parts(self.share(rows), self.rows_at_once):
            loss = -self.logprobs(part)[0].sum() * self.world / tokens
            loss.backward()
            total += loss.item()
        self._step()
        return total

    def _step(self) -> dict[str, float]:
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return {"grad_norm": float(full(norm))}

    @property
    def is_writer(self) -> bool:
        """Of several processes, one writes files."""
        return True

    def write(self, folder: str, dtype: torch.dtype) -> None:
        """A folder that vLLM loads: the weights, and links to the other files of the model."""
        state = {name: one.to(dtype).cpu() for name, one in self.weights()}
        if not self.is_writer:
            return
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(self.folder):
            target = os.path.join(folder, name)
            if not name.endswith(".safetensors") and not os.path.lexists(target):
                os.symlink(os.path.join(os.path.abspath(self.folder), name), target)
        save_file(state, os.path.join(folder, "model.part"), metadata={"format": "pt"})
        os.replace(os.path.join(folder, "model.part"), os.path.join(folder, "model.safetensors"))

    def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """All weights that an engine has to load. An output layer that is the embedding is there once, any other one is a weight of its own."""
        for name, one in self.model.state_dict().items():
            if not (self.is_tied and name == "lm_head.weight"):
                yield name, full(one.detach())

    def write_adapter(self, folder: str) -> None:
        """A folder that vLLM loads as a LoRA adapter."""
        state = adapter_weights(self.model)
        if self.is_writer:
            write_adapter(state, folder, rank=self.lora_rank, base=self.folder)


def _parts(rows: Sequence[TrainRow], rows_at_once: int) -> Iterable[list[TrainRow]]:
    """Rows of similar length together, so that little is padding."""
    ordered = sorted(rows, key=lambda row: row.length)
    for start in range(0, len(ordered), rows_at_once):
        yield ordered[start : start + rows_at_once]


def _flat(values: Iterable[tuple[list[float], list[int]]]) -> torch.Tensor:
    return torch.tensor([one for some, mask in values for one, kept in zip(some, mask) if kept], dtype=torch.float32)


class Measures:
    """Sums over the tokens of one update, kept on the device until the end."""

    def __init__(self) -> None:
        self.parts: dict[str, list[torch.Tensor]] = {}

    def add(self, **values: torch.Tensor) -> None:
        for name, value in values.items():
            self.parts.setdefault(name, []).append(value.detach().float().reshape(-1))

    def mismatch(self, differences: torch.Tensor) -> None:
        self.add(mismatch=differences.abs())

    def join(self) -> None:
        """What all processes saw, on each of them."""
        found: list[dict[str, torch.Tensor]] = [{} for _ in range(dist.get_world_size())]
        dist.all_gather_object(found, {name: torch.cat(parts).cpu() for name, parts in self.parts.items()})
        self.parts = {name: [one[name] for one in found if name in one] for name in {name: None for one in found for name in one}}

    def report(self) -> dict[str, Any]:
        joined = {name: torch.cat(parts) for name, parts in self.parts.items()}
        ratio, mismatch = joined["ratio"], joined["mismatch"]
        fresh = mismatch.numel() > 0
        return {
            "loss": joined["loss"].sum().item() / max(1, ratio.numel()),
            "tokens": ratio.numel(),
            "entropy": joined["entropy"].mean().item(),
            "ratio_mean": ratio.mean().item(),
            "ratio_min": ratio.min().item(),
            "ratio_max": ratio.max().item(),
            "clipped_share": joined["clipped"].mean().item(),
            # Only of tokens that the very weights being trained have sampled: nothing else is a mismatch of the two programs.
            "mismatch_tokens": mismatch.numel(),
            "mismatch_mean": mismatch.mean().item() if fresh else None,
            "mismatch_max": mismatch.max().item() if fresh else None,
        }
