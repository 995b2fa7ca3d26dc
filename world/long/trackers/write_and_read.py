"""Writes steps of a trainer and numbers of rollouts to real trackers, and prints as JSON what each tracker then has on its disk."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any, Iterator

import mlflow
import tensorboardX
import wandb
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from millrace.service.trainer import LogprobMismatch, TrainerStepView
from millrace.trackers import to_mlflow, to_tensorboard, to_wandb
from millrace_trainers.feedback import Tracker

given = json.load(sys.stdin)
folder = Path(given["folder"])
STEPS = 3


def make_step(number: int) -> TrainerStepView:
    mismatch = LogprobMismatch(backend="gpu-0:8000", policy_version=number, tokens=10, mean_abs=0.5, kl=0.25, most_abs=1.0)
    return TrainerStepView(
        run="r", step=number, at="2026-01-01T00:00:00Z", policy_version=number, loss=1.0 / (number + 1), kl=None, entropy=None,
        clip_share=float("nan"), metrics={"kl(p||q)": 0.125, "lr": 1e-5}, samples=4, unknown_samples=0, mismatch=(mismatch,), alarm=None,
    )  # fmt: skip


def read_wandb(run_folder: str) -> dict[str, Any]:
    """The history that an offline run keeps for `wandb sync`."""
    from wandb.proto import wandb_internal_pb2

    found: dict[str, Any] = {}
    for data in read_log(next(Path(run_folder).glob("run-*.wandb")).read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        for item in record.history.item if record.WhichOneof("record_type") == "history" else ():
            name = item.key or "/".join(item.nested_key)
            if not name.startswith("_"):
                found.setdefault(name, []).append([record.history.step.num, json.loads(item.value_json)])
    return found


def read_log(data: bytes) -> Iterator[bytes]:
    """LevelDB's log format after a header of seven bytes: blocks of 32 KiB, records in one or several parts."""
    at, parts = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack("<HB", data[at + 4 : at + 7])
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield parts
            parts = b""


def read_mlflow(run_id: str) -> dict[str, Any]:
    client = mlflow.MlflowClient()
    names = client.get_run(run_id).data.metrics
    return {name: [[one.step, one.value] for one in client.get_metric_history(run_id, name)] for name in names}


def read_tensorboard(path: Path) -> dict[str, Any]:
    events = EventAccumulator(str(path))
    events.Reload()
    return {name: [[one.step, one.value] for one in events.Scalars(name)] for name in events.Tags()["scalars"]}


found: dict[str, Any] = {}
run = wandb.init(mode="offline", dir=str(folder), project="millrace", settings=wandb.Settings(silent=True))
mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
mlflow.set_experiment("millrace")
with mlflow.start_run() as active:
    with tensorboardX.SummaryWriter(str(folder / "steps")) as writer:
        logs = [to_wandb(run), to_mlflow(mlflow), to_tensorboard(writer)]
        rollouts = Tracker("wandb", "mlflow", "tensorboard", folder=str(folder / "rollouts"))
        for number in range(STEPS):
            rollouts.log({"rollout/reward/mean": 0.25 * number, "rollout/score/part (a)": 1.0}, number)
            for log in logs:
                log(make_step(number))
    found["mlflow"] = read_mlflow(active.info.run_id)
run_folder = str(Path(run.dir).parent)
run.finish()
wandb.teardown()  # when its process has written everything
found["wandb"] = read_wandb(run_folder)
found["tensorboard"] = {**read_tensorboard(folder / "steps"), **read_tensorboard(folder / "rollouts")}
print(json.dumps(found))
