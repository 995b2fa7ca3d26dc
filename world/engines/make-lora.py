"""Writes a LoRA adapter for the tests' model into a folder: small random weights on two projections of every layer. A third argument is
their seed."""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

RANK = 8


def main(model: Path, folder: Path, seed: int = 7) -> None:
    config = json.loads((model / "config.json").read_text())
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    sizes = {"q_proj": hidden, "v_proj": hidden // heads * config["num_key_value_heads"]}
    torch.manual_seed(seed)
    weights = {}
    for layer in range(config["num_hidden_layers"]):
        for name, out in sizes.items():
            base = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            weights[f"{base}.lora_A.weight"] = 0.2 * torch.randn(RANK, hidden)
            weights[f"{base}.lora_B.weight"] = 0.2 * torch.randn(out, RANK)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "adapter_model.safetensors")
    adapter = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": RANK,
        "lora_alpha": 16,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted(sizes),
        "base_model_name_or_path": model.name,
    }
    (folder / "adapter_config.json").write_text(json.dumps(adapter))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
