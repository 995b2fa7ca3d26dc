"""GRPO's advantage for verl, over the rows that can be trained on. A row whose mask is zero everywhere stands for a rollout without a
reward: it counts in no mean and no deviation, and its advantage is 0."""

from __future__ import annotations

from typing import Any, Optional

import torch
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage, register_adv_est


@register_adv_est("millrace_grpo")
def compute_millrace_grpo_advantage(
    token_level_rewards: Any, response_mask: Any, index: Any, config: Optional[Any] = None, **_: Any
) -> tuple[Any, Any]:
    """As verl's own `grpo` if no mask is zero. In a group with one row that counts, nothing can be compared: its advantage is 0."""
    counts = response_mask.sum(dim=-1) > 0
    found = torch.zeros_like(token_level_rewards)
    if not bool(counts.any()):
        return found, found
    groups = index[counts.cpu().numpy()]
    scale = True if config is None else bool(config.get("norm_adv_by_std_in_grpo", True))
    inner, _returns = compute_grpo_outcome_advantage(
        token_level_rewards[counts], response_mask[counts], groups, norm_adv_by_std_in_grpo=scale
    )
    alone = torch.tensor([int((groups == one).sum()) == 1 for one in groups], device=inner.device)
    inner[alone] = 0.0
    found[counts] = inner.to(found.dtype)
    return found, found
