"""The weights of a policy as vLLM's weight transfer reads them: names, types and shapes first, then the tensors in the same order."""

from __future__ import annotations

from typing import Iterator

import torch
from vllm.distributed.weight_transfer import ParamMeta, WeightSource

from .policy import Policy


class CastWeights(WeightSource):
    def __init__(self, policy: Policy, dtype: torch.dtype) -> None:
        self.policy, self.dtype = policy, dtype

    def metadata(self) -> list[ParamMeta]:
        return [ParamMeta(name, self.dtype, tuple(one.shape)) for name, one in self.policy.weights()]

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        for name, one in self.policy.weights():
            yield name, one.to(self.dtype)
