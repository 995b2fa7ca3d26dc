"""LoRA: small trained matrices next to the frozen ones of every attention and MLP layer, written as PEFT does, so that vLLM loads them."""

from __future__ import annotations

import json
import os

import torch
from safetensors.torch import save_file
from torch import nn

#: The layers that get an adapter, by their names in Llama, Qwen, Mistral and their relatives.
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
#: The scale is ALPHA_OVER_RANK, whatever the rank.
ALPHA_OVER_RANK = 2


class LoraLinear(nn.Module):
    """x W + scale x A B. B starts at zero, so the model starts as it was."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base
        self.lora_A = nn.Linear(base.in_features, rank, bias=False, device=base.weight.device)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False, device=base.weight.device)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        added: torch.Tensor = self.lora_B(self.lora_A(x))
        return self.base(x) + ALPHA_OVER_RANK * added


def add_adapter(model: nn.Module, rank: int) -> None:
    """Freezes the model, and puts an adapter next to each target."""
    model.requires_grad_(False)
    found = [(parent, name, child) for parent in model.modules() for name, child in parent.named_children() if name in TARGETS]
    if not found:
        raise ValueError(f"the model has none of the layers {', '.join(TARGETS)}")
    for parent, name, child in found:
        setattr(parent, name, LoraLinear(child, rank))


def adapter_weights(model: nn.Module) -> dict[str, torch.Tensor]:
    """By the names that PEFT gives them."""
    return {
        f"base_model.model.{name}.{part}.weight": full(getattr(one, part).weight.detach()).cpu().contiguous()
        for name, one in model.named_modules()
        if isinstance(one, LoraLinear)
        for part in ("lora_A", "lora_B")
    }


def full(tensor: torch.Tensor) -> torch.Tensor:
    """Of a tensor that is spread over several processes, the whole, on each of them."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def write_adapter(weights: dict[str, torch.Tensor], folder: str, *, rank: int, base: str) -> None:
    """A folder that vLLM loads."""
    os.makedirs(folder, exist_ok=True)
    save_file(weights, os.path.join(folder, "adapter_model.safetensors"), metadata={"format": "pt"})
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": rank,
        "lora_alpha": ALPHA_OVER_RANK * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted({name.split(".")[-3] for name in weights}),
        "base_model_name_or_path": base,
    }
    with open(os.path.join(folder, "adapter_config.json"), "w") as file:
        json.dump(config, file, indent=2)
