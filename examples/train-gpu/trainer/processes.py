"""The programs next to the trainer: a vLLM server, and the Millrace service. Each writes its log into a file and ends with the trainer."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from types import TracebackType
from typing import Any, Optional


class Process:
    """A program in its own process group. It is ready when `url` answers 200."""

    def __init__(self, name: str, command: list[str], *, url: str, log: str, env: Optional[dict[str, str]] = None) -> None:
        self.name, self.url, self.log = name, url, log
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_end_with_parent,
                env={**os.environ, **(env or {})},
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self, timeout_s: float) -> float:
        started = time.monotonic()
        while time.monotonic() - started < timeout_s:
            if self._process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with exit code {self._process.returncode}; the end of {self.log}:\n{self._tail()}")
            if is_up(self.url):
                return time.monotonic() - started
            time.sleep(0.25)
        raise RuntimeError(f"{self.name} did not answer at {self.url} within {timeout_s:.0f} s; the end of {self.log}:\n{self._tail()}")

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if self._process.poll() is not None:
            return
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _tail(self) -> str:
        with open(self.log, errors="replace") as file:
            return "".join(file.readlines()[-15:])


def _end_with_parent() -> None:
    """SIGTERM when the trainer ends in any way, also by SIGKILL."""
    ctypes.CDLL("libc.so.6").prctl(1, signal.SIGTERM)


def is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def post(url: str, body: Any = None, timeout_s: float = 120) -> bytes:
    request = urllib.request.Request(url, data=json.dumps(body or {}).encode(), headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout_s) as reply:
        return bytes(reply.read())


def load_weights(engine: str, folder: str, *, flush_cache: bool) -> None:
    """vLLM reads the weights in place; prefixes that it computed with the old ones are dropped on request."""
    post(f"{engine}/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": os.path.abspath(folder)}})
    if flush_cache:
        drop_prefixes(engine)


def drop_prefixes(engine: str, timeout_s: float = 30) -> None:
    """vLLM refuses, with status 200, while a request holds some: one that has just ended may, for a moment."""
    started = time.monotonic()
    while json.loads(post(f"{engine}/reset_prefix_cache") or b"{}").get("success") is False:
        if time.monotonic() - started > timeout_s:
            raise RuntimeError(f"vLLM still holds prefixes of the old weights after {timeout_s:.0f} s: something samples at {engine}")
        time.sleep(0.05)


def start_vllm(model: str, *, log: str, port: int, **given: Any) -> Process:
    command, env = vllm_command(model, port=port, **given)
    return Process("vLLM", command, url=f"http://127.0.0.1:{port}/health", log=log, env=env)


def vllm_command(
    model: str, *, port: int, cpu: bool, api_servers: int, cache_gib: int, lora: int = 0, transfer: str = "file"
) -> tuple[list[str], dict[str, str]]:
    """With its routes for new weights, and with logprobs of the distribution that is sampled from."""
    # Only `vllm serve` can start several API processes.
    program = ["vllm.entrypoints.openai.api_server", "--model"] if api_servers == 1 else ["vllm.entrypoints.cli.main", "serve"]
    command = [sys.executable, "-m", *program, model, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--served-model-name", "smollm2", "--max-model-len", "2048"]
    command += ["--logprobs-mode", "processed_logprobs", "--disable-uvicorn-access-log"]
    env = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_SERVER_DEV_MODE": "1"}
    if cpu:
        command += ["--dtype", "float32", "--enforce-eager", "--max-num-seqs", "16", "--enable-scale-out"]
        env |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    else:
        # Few events: the API processes, not the GPU, limit a model of this size.
        command += ["--dtype", "bfloat16", "--max-num-seqs", "512", "--stream-interval", "64"]
        # A fixed size instead of a share of what is free: several servers can start on one GPU at the same time.
        command += ["--gpu-memory-utilization", "0.1", "--kv-cache-memory-bytes", str(cache_gib << 30)]
        command += ["--compilation-config", '{"mode":0,"cudagraph_mode":"FULL_DECODE_ONLY"}']
        env |= {"VLLM_USE_FLASHINFER_SAMPLER": "0"}
    command += ["--api-server-count", str(api_servers)] if api_servers > 1 else []
    if lora:
        # Turns in flight keep the adapter of the version before.
        command += ["--enable-lora", "--max-loras", "2", "--max-cpu-loras", "4", "--max-lora-rank", str(lora)]
        env |= {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"}
    if transfer != "file":
        command += ["--weight-transfer-config", json.dumps({"backend": transfer})]
        env |= {"VLLM_ALLOW_INSECURE_SERIALIZATION": "1"}  # handles of GPU memory are pickled
    return command, env


def start_millrace(program: str, config: dict[str, Any], *, folder: str, port: int) -> Process:
    """With an empty store, so that every run begins at policy version 0."""
    path = os.path.join(folder, "millrace.json")
    with open(path, "w") as file:
        json.dump(config, file, indent=2)
    command = [program, "serve", "--config", path, "--port", str(port), "--log", "json"]
    return Process("Millrace", command, url=f"http://127.0.0.1:{port}/v1/status", log=os.path.join(folder, "millrace.log"))
