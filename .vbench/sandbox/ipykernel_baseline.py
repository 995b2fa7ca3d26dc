"""The baseline of the IPython benchmark: cells through jupyter_client and an ipykernel over TCP, as notebooks and most agents run them.

Prints one JSON object: samples in milliseconds. Arguments: how many cells, how many kernels to start.
"""

import json
import sys
import time
from typing import List

from jupyter_client.manager import start_new_kernel


def run_cell(client: object, code: str) -> None:
    """Waits for the reply and for the kernel to be idle, after which no output follows."""
    request = client.execute(code)  # type: ignore[attr-defined]
    while True:
        message = client.get_iopub_msg(timeout=60)  # type: ignore[attr-defined]
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            break
    client.get_shell_msg(timeout=60)  # type: ignore[attr-defined]


def main(cells: int, starts: int) -> None:
    start_samples: List[float] = []
    cell_samples: List[float] = []
    for index in range(starts):
        began = time.perf_counter()
        manager, client = start_new_kernel(kernel_name="python3")
        run_cell(client, "1")
        start_samples.append((time.perf_counter() - began) * 1000)
        for cell in range(cells if index == 0 else 0):
            began = time.perf_counter()
            run_cell(client, f"print({cell})")
            cell_samples.append((time.perf_counter() - began) * 1000)
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    print(json.dumps({"cells": cell_samples, "starts": start_samples}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
