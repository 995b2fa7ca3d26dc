"""The policy on several GPUs with FSDP. Rank 0 is the trainer: it talks with the service, and calls the methods of a Policy. Each call is
passed on to the other ranks, which run `follow()`; every rank computes its share of the rows, and has its share of the weights.

    torchrun --nproc-per-node 4 train.py …
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Sequence

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from .policy import Clip, Policy, Scorer, TrainRow


class ShardedPolicy(Policy):
    """Made on every rank, after `dist.init_process_group`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        super().__init__(*args, **kwargs)

    @property
    def is_writer(self) -> bool:
        return self.rank == 0

    def place(self, scorer: Scorer) -> Scorer:
        """Each layer is gathered on its own, just before it is needed. The embedding and the output layer stay together: they may be one."""
        mesh = init_device_mesh(torch.device(self.device).type, (self.world,))
        for layer in scorer.model.model.layers:
            fully_shard(layer, mesh=mesh)
        return fully_shard(scorer, mesh=mesh)

    def share(self, rows: Sequence[TrainRow]) -> Sequence[TrainRow]:
        """As many on each rank, because every pass gathers weights from all: a row without trained tokens fills up."""
        own = list(rows[self.rank :: self.world])
        missing = -(-len(rows) // self.world) - len(own)
        return own + [replace(rows[0], mask=[0] * len(rows[0].mask))] * missing

    def add(self, rows: Sequence[TrainRow], *, clip: Clip) -> None:
        self._pass_on("add", rows, clip=clip)
        super().add(rows, clip=clip)

    def update(self) -> dict[str, Any]:
        self._pass_on("update")
        self._seen.join()
        return super().update()

    def imitate(self, rows: Sequence[TrainRow]) -> float:
        self._pass_on("imitate", rows)
        return super().imitate(rows)

    def recompute(self, rows: Sequence[TrainRow]) -> list[TrainRow]:
        raise NotImplementedError("--retokenise is not for several GPUs")

    def write(self, folder: str, dtype: torch.dtype) -> None:
        self._pass_on("write", folder, dtype)
        super().write(folder, dtype)

    def write_adapter(self, folder: str) -> None:
        self._pass_on("write_adapter", folder)
        super().write_adapter(folder)

    def follow(self) -> None:
        """On every rank but 0, until rank 0 calls `end`."""
        while True:
            call: list[Any] = [None]
            dist.broadcast_object_list(call, src=0)
            name, args, kwargs = call[0]
            if name == "end":
                return
            getattr(self, name)(*args, **kwargs)

    def end(self) -> None:
        self._pass_on("end")

    def _pass_on(self, name: str, *args: Any, **kwargs: Any) -> None:
        if self.rank == 0:
            dist.broadcast_object_list([(name, args, kwargs)], src=0)
