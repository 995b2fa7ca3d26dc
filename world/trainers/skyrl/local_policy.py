"""SkyRL's own policy worker in this process, on a CPU: its model wrapper, its loss and its forward and backward pass, without Ray and FSDP.
Replaced are what needs a cluster (dispatch, strategy, mesh) and what needs CUDA: the current device, and a kernel that is imported
but not called."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import peft  # noqa: F401  It and the next look for the kernel's package, and must not find the one made below.
import torch
import transformers.models.qwen2.modeling_qwen2  # noqa: F401

kernels = ModuleType("flash_attn.bert_padding")
kernels.pad_input = kernels.unpad_input = None  # type: ignore[attr-defined]
sys.modules.update({"flash_attn": ModuleType("flash_attn"), "flash_attn.bert_padding": kernels})
torch.cuda.current_device = lambda: "cpu"  # type: ignore[assignment, return-value]

from skyrl.backends.skyrl_train.utils.ppo_utils import PolicyLossRegistry  # noqa: E402
from skyrl.backends.skyrl_train.workers.model_wrapper import HFModelWrapper  # noqa: E402
from skyrl.backends.skyrl_train.workers.worker import PolicyWorkerBase  # noqa: E402

del sys.modules["flash_attn"], sys.modules["flash_attn.bert_padding"]


class LocalStrategy:
    """What SkyRL's strategies do around the optimiser, for one process."""

    def backward(self, loss: Any, model: Any, optimizer: Any, **_: Any) -> None:
        loss.backward()

    def optimizer_step(self, optimizer: Any, model: Any, scheduler: Any, **_: Any) -> Any:
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        return norm

    def all_reduce(self, data: Any, **_: Any) -> Any:
        return data


class LocalDispatch:
    """The calls of SkyRL's dispatch that its trainer makes in a training step, answered by one worker."""

    def __init__(self, cfg: Any, model: Any, learning_rate: float) -> None:
        worker = PolicyWorkerBase.__new__(PolicyWorkerBase)
        worker.cfg = cfg.trainer
        worker.policy_loss_fn = PolicyLossRegistry.get(cfg.trainer.algorithm.policy_loss_type)
        worker.model = HFModelWrapper(model, use_flash_attention_2=False, bf16=False)
        worker.optimizer = torch.optim.AdamW(worker.model.parameters(), lr=learning_rate)
        worker.scheduler = torch.optim.lr_scheduler.ConstantLR(worker.optimizer, factor=1.0)
        worker.strategy = LocalStrategy()
        worker.device_mesh = SimpleNamespace(get_group=lambda name: None)
        worker.mesh_rank = SimpleNamespace(dp_size=1)
        self.worker = worker

    def get_lcm_dp_size(self) -> int:
        return 1

    def stage_data(self, model: str, data: Any, boundaries: Any) -> list[Any]:
        return [data[start:end] for start, end in boundaries]

    def forward_backward_from_staged(self, model: str, chunk: Any) -> Any:
        return self.worker.forward_backward(chunk)

    def optim_step(self, model: str) -> Any:
        return self.worker.optim_step()

    def empty_cache(self, *_: Any) -> None:
        return None

    def log_probs(self, data: Any) -> Any:
        """Of the weights before the step."""
        with torch.no_grad():
            return self.worker.model(data["sequences"], data.metadata["response_length"], attention_mask=data["attention_mask"])
