#!/usr/bin/env python3
"""vLLM as train.py starts it, for several runs: `engine.py --model FOLDER`, then `train.py --engine http://127.0.0.1:8100`."""

from __future__ import annotations

import argparse
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here]

from trainer.processes import vllm_command  # noqa: E402

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--port", type=int, default=8100)
    parser.add_argument("--api-servers", type=int, default=1)
    parser.add_argument("--cache-gib", type=int, default=8)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--lora", type=int, default=0)
    parser.add_argument("--transfer", default="file")
    options = parser.parse_args()
    command, env = vllm_command(**vars(options))
    os.execve(command[0], command, {**os.environ, **env})
