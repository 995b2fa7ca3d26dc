"""The policy in PyTorch: log-probabilities of rows of tokens, one DAPO update, one supervised update, and its weights as a file."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace
from typing import Any, Iterable, Sequence

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM


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


class Policy:
    def __init__(self, folder: str, device: str, *, learning_rate: float, beta2: float, rows_at_once: int, bfloat16: bool = True) -> None:
        self.device = device
        self.rows_at_once = rows_at_once
        self.bfloat16 = bfloat16
        self.folder = folder
        # Weights and optimizer in float32; matrix products in bfloat16, or in float32 where the engine computes in float32 too.
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").to(device)
        self.model.config.use_cache = False
        # On a CPU, vLLM 0.32 keeps the output layer that it packed at its start, and that layer is the embedding.
        self.model.get_input_embeddings().weight.requires_grad_(device != "cpu")
        self._seen = _Measures()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=learning_rate, betas=(0.9, beta2), weight_decay=0.0)

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
            # Attention is causal and padding is on the right, so no token sees padding.
            hidden = self.model.model(input_ids=ids, use_cache=False).last_hidden_state
            # Logits only where a token was sampled: a full row of 49,152 numbers for each token is most of the memory.
            logits = self.model.lm_head(hidden[where[0], where[1] - 1])
        logits = logits.float()
        normalizer = torch.logsumexp(logits, dim=-1)
        chosen = logits.gather(-1, ids[where][:, None])[:, 0]
        with torch.no_grad():
            entropy = normalizer - (torch.softmax(logits, dim=-1) * logits).sum(-1)
        return chosen - normalizer, entropy

    def add(self, rows: Sequence[TrainRow], *, clip: Clip) -> None:
        """Adds the gradient of these rows to the update: DAPO with clip-higher, summed over tokens. A trainer may call it while it
        still waits for other rows."""
        for part in _parts(rows, self.rows_at_once):
            logprobs, entropy = self.logprobs(part)
            counts = torch.tensor([sum(row.mask) for row in part], device=self.device)
            recorded = _flat((row.recorded, row.mask) for row in part).to(self.device)
            advantages = torch.tensor([row.advantage for row in part], device=self.device).repeat_interleave(counts)
            stale = torch.tensor([row.staleness for row in part], device=self.device).repeat_interleave(counts)
            ratio = torch.exp(logprobs - recorded)
            clipped = torch.clamp(ratio, 1 - clip.low, 1 + clip.high)
            loss = -torch.minimum(ratio * advantages, clipped * advantages).sum()
            loss.backward()
            self._seen.add(loss=loss, ratio=ratio, clipped=(ratio * advantages > clipped * advantages), entropy=entropy)
            self._seen.mismatch((logprobs - recorded)[stale == 0])
        if self.device == "cuda":
            torch.cuda.synchronize()  # so that the time of this call is the time of the work

    def update(self) -> dict[str, Any]:
        """The optimizer step for all rows that were added: the mean over their tokens. Returns what was measured on the way."""
        if not self._seen.parts:
            return {}
        measured, self._seen = self._seen.report(), _Measures()
        for one in self.model.parameters():
            if one.grad is not None:
                one.grad /= measured["tokens"]
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
        for part in _parts(rows, self.rows_at_once):
            loss = -self.logprobs(part)[0].sum() / tokens
            loss.backward()
            total += loss.item()
        self._step()
        return total

    def _step(self) -> dict[str, float]:
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return {"grad_norm": float(norm)}

    def write(self, folder: str, dtype: torch.dtype) -> None:
        """A folder that vLLM loads: the weights, and links to the other files of the model."""
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(self.folder):
            target = os.path.join(folder, name)
            if not name.endswith(".safetensors") and not os.path.lexists(target):
                os.symlink(os.path.join(os.path.abspath(self.folder), name), target)
        # The output layer is the embedding, and is stored once.
        state = {name: one.detach().to(dtype).cpu() for name, one in self.model.state_dict().items() if name != "lm_head.weight"}
        save_file(state, os.path.join(folder, "model.part"), metadata={"format": "pt"})
        os.replace(os.path.join(folder, "model.part"), os.path.join(folder, "model.safetensors"))


def _parts(rows: Sequence[TrainRow], rows_at_once: int) -> Iterable[list[TrainRow]]:
    """Rows of similar length together, so that little is padding."""
    ordered = sorted(rows, key=lambda row: row.length)
    for start in range(0, len(ordered), rows_at_once):
        yield ordered[start : start + rows_at_once]


def _flat(values: Iterable[tuple[list[float], list[int]]]) -> torch.Tensor:
    return torch.tensor([one for some, mask in values for one, kept in zip(some, mask) if kept], dtype=torch.float32)


class _Measures:
    """Sums over the tokens of one update, kept on the device until the end."""

    def __init__(self) -> None:
        self.parts: dict[str, list[torch.Tensor]] = {}

    def add(self, **values: torch.Tensor) -> None:
        for name, value in values.items():
            self.parts.setdefault(name, []).append(value.detach().float().reshape(-1))

    def mismatch(self, differences: torch.Tensor) -> None:
        self.add(mismatch=differences.abs())

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
