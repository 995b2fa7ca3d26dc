"""Two processes of a trainer, connected by PyTorch as for FSDP or ZeRO-3: a collective call inside `load_weights` needs both."""

from __future__ import annotations

import json
import os
import socket
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import torch
import torch.multiprocessing as processes
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs

from millrace_trainers import RolloutSource
from millrace_trainers.trl import MillraceRollouts


def train(rank: int, port: int, found: Any) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    # A call that not every process makes fails after this time.
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(backend="gloo", timeout=timedelta(seconds=120))])
    source = RolloutSource()

    def load_weights(trainer: Any) -> None:
        shard = torch.tensor([float(rank + 1)])
        torch.distributed.all_reduce(shard)
        policy = source.client.policy.get()
        found.put([rank, trainer.state.global_step, shard.item(), policy.state, policy.policy_version])

    rollouts = MillraceRollouts(source, load_weights=load_weights)
    for step in range(3):
        rollouts._follow_weights(SimpleNamespace(state=SimpleNamespace(global_step=step), accelerator=accelerator))
    torch.distributed.destroy_process_group()


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    context = processes.get_context("fork")
    found = context.SimpleQueue()
    ranks = [context.Process(target=train, args=(rank, port, found)) for rank in range(2)]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
    assert all(one.exitcode == 0 for one in ranks), [one.exitcode for one in ranks]
    loads = sorted((found.get() for _ in range(4)), key=lambda one: (one[1], one[0]))
    policy = RolloutSource().client.policy.get()
    print(json.dumps({"loads": loads, "after": [policy.state, policy.policy_version]}))


if __name__ == "__main__":
    main()
