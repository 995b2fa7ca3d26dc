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
        self._counts = {"polls": 0.0, "seconds": 0.0, "sampling": 0.0, "training": 0.0, "both": 0.0, "waiting": 0.0, "running": 0.0}
        self._doing = ""
        self._timers: dict[str, float] = {}
        self._utilization: list[float] = []
        self._end = threading.Event()
        self._smi: Optional[subprocess.Popen[str]] = None
        threading.Thread(target=self._poll, daemon=True).start()
        self._start_smi()

    @contextmanager
    def time(self, name: str) -> Iterator[None]:
        """Adds to the seconds of this name. `train` is the GPU's work; every other name is waiting for something else. During `reload`
        vLLM samples nothing, although it counts its requests as running."""
        started = time.monotonic()
        self._doing = name
        try:
            yield
        finally:
            self._doing = ""
            with self._lock:
                self._timers[name] = self._timers.get(name, 0.0) + time.monotonic() - started

    def take(self) -> dict[str, Any]:
        """What was measured since the last call."""
        with self._lock:
            counts, timers, used = self._counts, self._timers, self._utilization
            self._counts = dict.fromkeys(counts, 0.0)
            self._timers, self._utilization = {}, []
        seconds = max(1e-9, counts["seconds"])
        return {
            "polls": int(counts["polls"]),
            **{f"share_{name}": counts[name] / seconds for name in ("sampling", "training", "both", "waiting")},
            "requests_running": counts["running"] / seconds,
            "gpu_busy": sum(used) / len(used) / 100 if used else None,
            "seconds": {name: round(value, 4) for name, value in timers.items()},
        }

    def close(self) -> None:
        self._end.set()
        if self._smi:
            self._smi.terminate()

    def _poll(self) -> None:
        """Each answer stands for the time since the one before: a busy vLLM answers late, so its polls are fewer."""
        before = time.monotonic()
        while not self._end.wait(self._interval_s):
            training, reloading = self._doing == "train", self._doing == "reload"
            running = self._read_running()
            if running is None:
                continue
            if reloading:
                running = 0
            now = time.monotonic()
            passed, before = now - before, now
            with self._lock:
                counts = self._counts
                counts["polls"] += 1
                counts["seconds"] += passed
                counts["running"] += running * passed
                name = "both" if running and training else "sampling" if running else "training" if training else "waiting"
                counts[name] += passed
                if name == "both":
                    counts["sampling"] += passed
                    counts["training"] += passed

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
