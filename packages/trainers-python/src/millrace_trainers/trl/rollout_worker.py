"""The `rollout_worker` and the `weight_transfer` of TRL's AsyncGRPOTrainer. Groups are sampled while the trainer trains; every branch is a
sample, and all branches of a rollout have its advantage, computed over rollouts. Rollouts without a reward give no sample."""

from __future__ import annotations

import importlib
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Iterable, Iterator, Mapping, Optional, Protocol

from millrace import PauseMode, Stop
from millrace.dapo import is_informative
from millrace.export.rows import message_to_openai

from ..advantages import rollout_advantages
from ..rollouts import Job, RolloutSource
from ..train_rows import TrainRow, to_train_rows
from .sampling import to_sampling


class MillraceRolloutWorker:
    """`AsyncGRPOTrainer(args=config, rollout_worker=MillraceRolloutWorker(source, tasks, config), weight_transfer=…)`: `args` are those of
    the trainer, whose sampling settings and `num_generations` count here too. Goes through `tasks` again and again. `groups` of them are
    sampled at a time; it waits while `buffer` samples are not yet taken. Groups whose rewards are all equal are left out, as in DAPO,
    unless `keep_uniform`."""

    def __init__(
        self,
        source: RolloutSource,
        tasks: Iterable[Mapping[str, Any]],
        args: Any,
        *,
        groups: int = 8,
        buffer: int = 1024,
        keep_uniform: bool = False,
    ) -> None:
        self.rollout_buffer: queue.Queue[Any] = queue.Queue(maxsize=buffer)
        self.metrics_queue: queue.Queue[Any] = queue.Queue()
        self._source = source
        self._tasks = list(tasks)
        self._group_size = int(args.num_generations)
        self._sampling = to_sampling(args)
        self._keep_uniform = keep_uniform
        self._numbers = iter(range(1 << 62))
        self._lock = threading.Lock()
        self._stop = Stop()
        self._is_stopped = threading.Event()
        self._pool = ThreadPoolExecutor(groups, thread_name_prefix="millrace-trl")
        self._groups = groups
        self._error: Optional[BaseException] = None
        self._produced_at = time.monotonic()
        #: The service's policy version when TRL counts 0.
        self._offset = 0

    def start(self) -> None:
        self._produced_at = time.monotonic()
        for _ in range(self._groups):
            self._pool.submit(self._work)

    def stop(self) -> None:
        self._is_stopped.set()
        self._stop.stop()
        self._pool.shutdown(wait=True)

    def update_model_version(self, model_version: int) -> None:
        self._offset = self._source.client.policy.get().policy_version - model_version

    def check_health(self, stale_after_s: float) -> None:
        if self._error is not None:
            raise RuntimeError(f"sampling from Millrace failed: {self._error}") from self._error
        quiet_s = time.monotonic() - self._produced_at
        if quiet_s > stale_after_s:
            raise RuntimeError(f"Millrace gave no sample for {quiet_s:.0f} s; its status and `millrace watch` say why")

    def _work(self) -> None:
        try:
            while not self._is_stopped.is_set():
                with self._lock:
                    number = next(self._numbers)
                task = self._tasks[number % len(self._tasks)]
                jobs = [Job(task, group=str(number), sampling=self._sampling) for _ in range(self._group_size)]
                self._put(self._to_samples(to_train_rows(self._source.run(jobs, stop=self._stop)), number))
        except BaseException as error:
            if not self._is_stopped.is_set():
                self._error = error

    def _to_samples(self, rows: list[TrainRow], group_id: int) -> list[Any]:
        rewards = {row.rollout.id: row.reward for row in rows}
        scored = [one for one in rewards.values() if one is not None]
        unscored = (float(len(rewards) - len(scored)), float(len(rewards)))
        self.metrics_queue.put({"rollout/unscored_frac": unscored})
        if not self._keep_uniform and not is_informative(scored):
            return []
        found = zip(rows, rollout_advantages(rows, ddof=0, epsilon=1e-8))
        return [_to_sample(row, advantage, group_id, self._offset) for row, advantage in found if not row.placeholder]

    def _put(self, samples: list[Any]) -> None:
        """Waits while the buffer is full; what the trainer has not taken yet counts as produced."""
        for sample in samples:
            while not self._is_stopped.is_set():
                self._produced_at = time.monotonic()
                try:
                    sample.enqueued_at = time.time()
                    self.rollout_buffer.put(sample, timeout=0.2)
                    break
                except queue.Full:
                    continue


class Transfer(Protocol):
    """What TRL's own weight transfers do."""

    def init_weight_transfer(self) -> None: ...
    def pause(self) -> None: ...
    def send_weights(self, iterator: Iterator[tuple[str, Any]]) -> None: ...
    def resume(self) -> None: ...
    def destroy(self) -> None: ...


class MillraceWeightTransfer:
    """Pauses sampling in Millrace, has `inner` bring the weights to the engines, and resumes under the next policy version. `inner` is a
    weight transfer of TRL, such as its `WeightTransferClient`. With `mode="abort"` turns in progress are cut and go on under the new
    weights; with `wait` they end first."""

    def __init__(self, source: RolloutSource, inner: Transfer, *, mode: PauseMode = "abort") -> None:
        self._source = source
        self._inner = inner
        self._mode: PauseMode = mode
        self._version = 0

    def init_weight_transfer(self) -> None:
        self._inner.init_weight_transfer()

    def pause(self) -> None:
        self._version = self._source.pause(self._mode).policy_version
        self._inner.pause()

    def send_weights(self, iterator: Iterator[tuple[str, Any]]) -> None:
        self._inner.send_weights(iterator)

    def resume(self) -> None:
        self._inner.resume()
        self._source.resume(self._version + 1)

    def destroy(self) -> None:
        self._inner.destroy()


def _to_sample(row: TrainRow, advantage: float, group_id: int, offset: int) -> Any:
    numpy = importlib.import_module("numpy")
    worker = importlib.import_module("trl.experimental.async_grpo.async_rollout_worker")
    assert row.row is not None and row.reward is not None
    silent = len(row.prompt_ids)
    segments = row.row.segments
    return worker.RolloutSample(
        prompt=[message_to_openai(one) for segment in row.row.prompt_segments for one in segment.head.messages],
        completion=[message_to_openai(one) for segment in row.row.response_segments for one in segment.head.messages],
        input_ids=numpy.asarray(row.prompt_ids + row.response_ids, dtype=numpy.int64),
        completion_mask=numpy.asarray([0] * silent + row.response_mask, dtype=numpy.int64),
        old_log_probs=numpy.asarray([0.0] * silent + row.response_logprobs, dtype=numpy.float32),
        advantage=advantage,
        # The oldest weights that sampled it decide whether it is stale.
        model_version=(row.policy_versions.first if row.policy_versions else offset) - offset,
        group_id=group_id,
        metrics={"reward": row.reward, "turns": float(sum(1 for one in segments if one.sampled))},
    )
