"""The options of train.py. `--cpu` makes everything small."""

from __future__ import annotations

import argparse
import os
import shutil
from typing import Optional
from urllib.parse import urlsplit

from .arithmetic import ARITHMETIC, ARITHMETIC_WITH_TOOL
from .chores import CHORES

TASKS = {"math": ARITHMETIC, "math-tools": ARITHMETIC_WITH_TOOL, "shell": CHORES}


def read_options(description: Optional[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--model", required=True, help="folder of the model: config.json, model.safetensors, tokenizer")
    add("--out", required=True, help="folder for steps.jsonl, logs, the store and the weights")
    add("--task", choices=tuple(TASKS), default="math", help="arithmetic without tools or with the IPython tool, or chores in a shell")
    add("--steps", type=int, default=150)
    add("--minutes", type=float, help="stop after so many minutes of training")
    add("--seed", type=int, default=0)
    add("--groups", type=int, default=20, help="informative groups in a batch")
    add("--group-size", type=int, default=16)
    add("--max-groups", type=int, default=128, help="a batch is trained with fewer groups once so many were sampled")
    add("--lookahead", type=int, default=1, help="batches that are sampled before their turn")
    add("--synchronous", action="store_true", help="sample only while nothing is trained: the baseline")
    add("--in-place", action="store_true", help="load weights while turns are sampled, instead of waiting for them at the gate")
    add("--retokenise", action="store_true", help="train on texts that were tokenised again instead of the sampled tokens: an ablation")
    add("--tis", type=float, help="truncated importance sampling with at most this weight, instead of DAPO's clip: for engines that differ")
    add("--lora", type=int, default=0, metavar="RANK", help="train LoRA adapters of this rank, which vLLM loads under a name for each version")
    add("--transfer", choices=("file", "ipc", "nccl"), default="file", help="how weights get to vLLM: a file, or GPU to GPU (on one GPU: ipc)")
    add("--learning-rate", type=float, default=1e-5)
    add("--beta2", type=float, default=0.999, help="of AdamW")
    add("--max-tokens", type=int, default=64, help="of one turn")
    add("--warmup", type=int, default=0, help="supervised steps on scripted demonstrations before the first batch")
    add("--warmup-rate", type=float, default=2e-5, help="their learning rate")
    add("--demonstrations", type=int, default=200)
    add("--evaluate-every", type=int, default=20)
    add("--held-out", type=int, default=40, help="held-out tasks of each kind")
    add("--samples", type=int, default=4, help="samples of each held-out task")
    add("--rows-at-once", type=int, default=64, help="rows of one pass; a pass begins when so many have arrived")
    add("--cpu", action="store_true", help="everything on the CPU: two small steps")
    add("--bfloat16", action="store_true", help="with --cpu: train with products in bfloat16, which is faster on a CPU with AMX")
    add("--engine", help="address of a vLLM that runs already, with VLLM_SERVER_DEV_MODE=1; by default one is started")
    add("--engine-port", type=int, default=8100)
    add("--api-servers", type=int, default=1, help="API processes of vLLM")
    add("--cache-gib", type=int, default=8, help="GPU memory for vLLM's cache of keys and values")
    add("--millrace", default=find_millrace(), help="the millrace command")
    add("--port", type=int, default=8107, help="of the service")
    add("--workers", type=int, default=8)
    add("--run-slots", type=int, default=48, help="rollouts that one worker runs at a time")
    add("--init-slots", type=int, default=16)
    add("--warm-sandboxes", type=int, default=8)
    add("--data", help="folder of the store; OUT by default")
    add("--weights", help="folder in which weights are handed over; OUT by default, /dev/shm is faster")
    options = parser.parse_args()
    options.engine_port = urlsplit(options.engine).port or 80 if options.engine else options.engine_port
    options.device = "cpu" if options.cpu else "cuda"
    if options.transfer != "file" and (options.cpu or options.lora):
        parser.error("--transfer ipc and nccl need a GPU, and send whole models: not with --cpu or --lora")
    options.model, options.out = os.path.abspath(options.model), os.path.abspath(options.out)
    if options.cpu:
        given = vars(parser.parse_args([*_required(options)]))
        small: dict[str, float] = {
            **{"steps": 2, "groups": 2, "group_size": 8, "max_groups": 6, "max_tokens": 40, "held_out": 1, "samples": 2},
            **{"warmup": 12, "warmup_rate": 1e-4, "demonstrations": 12, "evaluate_every": 2, "workers": 1, "run_slots": 16, "warm_sandboxes": 1},
        }
        # What was named on the command line stays.
        for name, value in small.items():
            if getattr(options, name) == given[name]:
                setattr(options, name, value)
    return options


def _required(options: argparse.Namespace) -> list[str]:
    return ["--model", options.model, "--out", options.out]


def find_millrace() -> str:
    clone = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../packages/cli/bin/millrace")
    return shutil.which("millrace") or os.path.abspath(clone)
