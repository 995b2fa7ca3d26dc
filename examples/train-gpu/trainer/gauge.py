"""What the GPU did: a thread asks vLLM several times a second whether it samples, and notes whether the trainer trains. nvidia-smi adds
the share of time in which any kernel ran."""

from __future__ import annotations

import re
import subprocess
import threading
import time
import urllib.request
from contextlib import contextmanager
from typing import Any, Iterator, Optional


class Gauge:
    def __init__(self, engine: str, *, interval_s: float = 0.2) -> None:
        self._url = f"{engine}/metrics"
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._counts = {"polls": 0, "sampling": 0, "training": 0, "both": 0, "waiting": 0, "running": 0.0}
        self._training = False
        self._timers: dict[str, float] = {}
        self._utilization: list[float] = []
        self._end = threading.Event()
        self._smi: Optional[subprocess.Popen[str]] = None
        threading.Thread(target=self._poll, daemon=True).start()
        self._start_smi()

    @contextmanager
    def time(self, name: str) -> Iterator[None]:
        """Adds to the seconds of this name. `train` is the GPU's work; every other name is waiting for something else."""
        started = time.monotonic()
        self._training = name == "train"
        try:
            yield
        finally:
            self._training = False
            with self._lock:
                self._timers[name] = self._timers.get(name, 0.0) + time.monotonic() - started

    def take(self) -> dict[str, Any]:
        """What was measured since the last call."""
        with self._lock:
            counts, timers, used = self._counts, self._timers, self._utilization
            self._counts = dict.fromkeys(counts, 0)
            self._timers, self._utilization = {}, []
        polls = max(1, counts["polls"])
        return {
            "polls": counts["polls"],
            "share_sampling": counts["sampling"] / polls,
            "share_training": counts["training"] / polls,
            "share_both": counts["both"] / polls,
            "share_waiting": counts["waiting"] / polls,
            "requests_running": counts["running"] / polls,
            "gpu_busy": sum(used) / len(used) / 100 if used else None,
            "seconds": {name: round(value, 4) for name, value in timers.items()},
        }

    def close(self) -> None:
        self._end.set()
        if self._smi:
            self._smi.terminate()

    def _poll(self) -> None:
        while not self._end.wait(self._interval_s):
            training = self._training
            running = self._read_running()
            if running is None:
                continue
            with self._lock:
                self._counts["polls"] += 1
                self._counts["running"] += running
                name = "both" if running and training else "sampling" if running else "training" if training else "waiting"
                self._counts[name] += 1
                if name == "both":
                    self._counts["sampling"] += 1
                    self._counts["training"] += 1

    def _read_running(self) -> Optional[float]:
        try:
            with urllib.request.urlopen(self._url, timeout=5) as reply:
                text = reply.read().decode()
        except OSError:
            return None
        return sum(float(one) for one in re.findall(r"^vllm:num_requests_running(?:\{.*\})? (\S+)$", text, re.M))

    def _start_smi(self) -> None:
        command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "200"]
        try:
            self._smi = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            return  # no GPU
        threading.Thread(target=self._read_smi, daemon=True).start()

    def _read_smi(self) -> None:
        assert self._smi and self._smi.stdout
        for line in self._smi.stdout:
            if line.strip().isdigit():
                with self._lock:
                    self._utilization.append(float(line))
