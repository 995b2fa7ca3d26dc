#!/usr/bin/env python3
"""How much CPU time vLLM's processes use for one request: `request_cost.py --port 8100 --requests 40`, against the vLLM of engine.py."""

from __future__ import annotations

import argparse
import json
import os
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here]

from trainer.cpu_time import CpuTime  # noqa: E402

KINDS: dict[str, dict[str, Any]] = {
    "1 token": {"max_tokens": 1, "stream": True},
    "24 tokens, streamed": {"max_tokens": 24, "stream": True},
    "24 tokens, one reply": {"max_tokens": 24},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8100)
    parser.add_argument("--requests", type=int, default=40, help="of each kind, 16 at a time")
    options = parser.parse_args()
    always = {"model": "smollm2", "prompt": list(range(100, 130)), "ignore_eos": True, "logprobs": 0, "return_token_ids": True}

    def ask(body: dict[str, Any]) -> None:
        address = f"http://127.0.0.1:{options.port}/v1/completions"
        request = urllib.request.Request(address, json.dumps({**always, **body}).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as reply:
            reply.read()

    ask(KINDS["1 token"])
    cpu_time = CpuTime(engine_port=options.port)
    for name, body in KINDS.items():
        cpu_time.take()
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda _: ask(body), range(options.requests)))
        used = {part: round(1000 * seconds / options.requests, 2) for part, seconds in cpu_time.take().items() if part.startswith("vllm")}
        print(json.dumps({"kind": name, "ms_per_request": used}), flush=True)


if __name__ == "__main__":
    main()
