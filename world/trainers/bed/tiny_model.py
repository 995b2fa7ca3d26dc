"""A tiny random causal model over a real vocabulary, for optimiser steps on a CPU."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM


def open_tokenizer(folder: str) -> Any:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def open_model(tokenizer: Any, *, size: int = 16) -> Any:
    torch.manual_seed(1)
    config = Qwen2Config(
        vocab_size=max(len(tokenizer), tokenizer.vocab_size), hidden_size=size, intermediate_size=2 * size, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=4096, tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    return Qwen2ForCausalLM(config)


def take_weights(model: Any) -> list[Any]:
    return [one.detach().clone() for one in model.parameters()]


def count_changed(model: Any, before: list[Any]) -> int:
    """How many tensors differ from `before`."""
    return sum(1 for one, old in zip(model.parameters(), before) if not torch.equal(one.detach(), old))
