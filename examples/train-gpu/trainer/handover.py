"""How new weights get to vLLM: as a file, as a LoRA adapter, or from GPU to GPU. `prepare` runs while vLLM still samples, `load` at the gate."""

from __future__ import annotations

import os
from typing import Any, Optional, Protocol

import torch

from .policy import Policy
from .processes import drop_prefixes, load_weights, post


class Handover(Protocol):
    #: The LoRA adapter that has the newest weights.
    adapter: Optional[str]

    def prepare(self, version: int) -> None: ...

    def load(self, *, flush_cache: bool) -> None: ...


class FileHandover:
    """A file that vLLM reads in place. It works everywhere, and costs a write and a read of the whole model."""

    adapter = None

    def __init__(self, policy: Policy, engine: str, folder: str, dtype: torch.dtype) -> None:
        self.policy, self.engine, self.folder, self.dtype = policy, engine, folder, dtype

    def prepare(self, version: int) -> None:
        self.policy.write(self.folder, self.dtype)

    def load(self, *, flush_cache: bool) -> None:
        load_weights(self.engine, self.folder, flush_cache=flush_cache)


class AdapterHandover:
    """A LoRA adapter under a name of its own for each version, so that turns in flight keep the one that they began with. The version
    before the last one is unloaded. vLLM's prefixes belong to an adapter, so none has to be dropped."""

    def __init__(self, policy: Policy, engine: str, folder: str) -> None:
        self.policy, self.engine, self.folder = policy, engine, folder
        self.adapter: Optional[str] = None
        self._loaded: list[str] = []

    def prepare(self, version: int) -> None:
        self.adapter = f"step-{version}"
        self.policy.write_adapter(self._path(self.adapter))

    def load(self, *, flush_cache: bool) -> None:
        assert self.adapter is not None
        post(f"{self.engine}/v1/load_lora_adapter", {"lora_name": self.adapter, "lora_path": self._path(self.adapter)})
        self._loaded.append(self.adapter)
        if len(self._loaded) > 2:
            post(f"{self.engine}/v1/unload_lora_adapter", {"lora_name": self._loaded.pop(0)})

    def _path(self, adapter: str) -> str:
        return os.path.join(self.folder, adapter)


class DeviceHandover:
    """From the trainer's GPU to vLLM's, with vLLM's own classes (0.32 or later): `ipc` where both are on one GPU, `nccl` on two. The weights
    are copied at the gate, and nothing is written."""

    adapter = None

    def __init__(self, policy: Policy, engine: str, kind: str, dtype: torch.dtype) -> None:
        self.policy, self.engine, self.kind, self.dtype = policy, engine, kind, dtype
        self._sender: Any = None

    def prepare(self, version: int) -> None:
        """Nothing: the weights are sent as they are."""

    def load(self, *, flush_cache: bool) -> None:
        self._sender = self._sender or self._open()
        self._sender.send_weights()
        if flush_cache:
            drop_prefixes(self.engine)

    def _open(self) -> Any:
        # Only here: importing vLLM takes seconds, and a trainer that writes files does not need it.
        from vllm.distributed.weight_transfer import HTTPVLLMWeightSyncClient, WeightTransferTrainerFactory

        from .cast_weights import CastWeights

        client, source = HTTPVLLMWeightSyncClient(self.engine), CastWeights(self.policy, self.dtype)
        return WeightTransferTrainerFactory.trainer_init(init_info=self._info(), client=client, source=source)

    def _info(self) -> Any:
        if self.kind == "ipc":
            from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo

            return IPCTrainerInitInfo(rank=0)
        from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo
        from vllm.utils.network_utils import get_open_port

        # This process, and one worker of vLLM.
        return NCCLTrainerInitInfo(rank=0, master_address="127.0.0.1", master_port=get_open_port(), world_size=2)


def open_handover(options: Any, policy: Policy, engine: str) -> Handover:
    folder = os.path.join(options.weights or options.out, "weights")
    dtype = torch.float32 if options.cpu else torch.bfloat16
    if options.lora:
        return AdapterHandover(policy, engine, os.path.join(os.path.dirname(folder), "adapters"))
    return FileHandover(policy, engine, folder, dtype) if options.transfer == "file" else DeviceHandover(policy, engine, options.transfer, dtype)
