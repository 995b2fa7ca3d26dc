"""What a trainer posts back: samples from rows hold only what the policy sampled, pages are read to their end, and trackers get numbers."""

from __future__ import annotations

import asyncio
import dataclasses
import unittest
from typing import Any

from fakes.examples import make_rollout, make_trajectory, read_golden
from fakes.fake_service import FakeService, Received, Reply

from millrace import AsyncClient, Client, TrainerStepView, trainer_sample
from millrace.export import to_rows
from millrace.trackers import to_mlflow, to_numbers, to_tensorboard, to_wandb
from millrace.wire.codec import from_wire

STEP = read_golden("trainer-steps.json")["steps"][0]


def make_step(**changes: Any) -> TrainerStepView:
    return dataclasses.replace(from_wire(TrainerStepView, STEP), **changes)


def reply_to(request: Received) -> Reply:
    if request.method == "POST":
        return Reply({**STEP, "step": request.body["step"]})
    if request.path.endswith("/trainer"):
        return Reply(read_golden("trainer-samples.json"))
    after = int(request.query.get("after", "0"))
    step = {**STEP, "step": after + 1}
    return Reply({"steps": [step], "next": after + 1 if after < 2 else None, "runs": read_golden("trainer-steps.json")["runs"]})


class TrainerTest(unittest.TestCase):
    def test_a_sample_holds_what_the_mask_marks(self) -> None:
        [row] = to_rows((make_rollout(), make_trajectory()))
        self.assertEqual(row.response_mask, [1, 1, 0, 0, 0])
        sample = trainer_sample(row, advantage=0.5, logprobs=[-1, -2, 9, 9, 9], kl=[0.25, 0.5, 9, 9, 9])
        self.assertEqual(
            sample, {"rollout_id": "r-1", "branch": 0, "advantage": 0.5, "logprobs": [-1.0, -2.0], "kl": [0.25, 0.5]}
        )
        with self.assertRaisesRegex(ValueError, "logprobs of rollout r-1: 2 numbers for 5 tokens"):
            trainer_sample(row, logprobs=[-1, -2])

    def test_a_step_sends_what_is_given_and_returns_the_mismatch(self) -> None:
        with FakeService(reply_to) as service, Client(service.url) as client:
            step = client.trainer.post(7, loss=0.0, samples=[{"rollout_id": "r-1", "advantage": 1.0}], metrics={"lr": 0.5})
            client.trainer.post(8)
        self.assertEqual((step.step, step.mismatch[0].tokens, step.alarm), (7, 1200, STEP["alarm"]))
        first, second = (request.body for request in service.received)
        self.assertEqual(
            first,
            {"run": "default", "step": 7, "loss": 0.0, "metrics": {"lr": 0.5}, "samples": [{"rollout_id": "r-1", "advantage": 1.0}]},
        )
        self.assertEqual(second, {"run": "default", "step": 8})

    def test_steps_are_read_to_their_last_page_of_one_run(self) -> None:
        with FakeService(reply_to) as service, Client(service.url) as client:
            self.assertEqual([one.step for one in client.trainer.steps()], [1, 2, 3])
            self.assertEqual([request.query.get("run") for request in service.received], [None, "run-7", "run-7"])
            self.assertEqual([one.run for one in client.trainer.runs()], ["run-7"])
            self.assertEqual(client.trainer.samples("r-1")[0].logprobs, (-0.5, -2.0))

    def test_asyncio_has_the_same_calls(self) -> None:
        async def run(url: str) -> list[int]:
            async with AsyncClient(url) as client:
                await client.trainer.post(1)
                await client.trainer.runs()
                await client.trainer.samples("r-1")
                return [one.step async for one in client.trainer.steps()]

        with FakeService(reply_to) as service:
            self.assertEqual(asyncio.run(run(service.url)), [1, 2, 3])


class Recorder:
    """Stands for a run of W&B, the module of MLflow, and a writer of TensorBoard: it has the one method that each callback calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def log(self, numbers: Any, *, step: int) -> None:
        self.calls.append((numbers, step))

    log_metrics = log

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.calls.append((name, value, step))


class TrackersTest(unittest.TestCase):
    def test_numbers_have_names_and_what_is_absent_is_left_out(self) -> None:
        numbers = to_numbers(make_step(loss=None, entropy=float("nan")))
        self.assertEqual(
            set(numbers),
            {"trainer/kl", "trainer/clip_share", "trainer/policy_version", "trainer/mismatch/mean_abs", "trainer/mismatch/kl"}
            | {"trainer/mismatch/most_abs", "trainer/mismatch/10.0.0.1:8000", "lr"},
        )
        self.assertAlmostEqual(numbers["trainer/mismatch/mean_abs"], 0.031)

    def test_each_tracker_gets_the_numbers_at_the_step(self) -> None:
        wandb, mlflow, writer = Recorder(), Recorder(), Recorder()
        step = make_step()
        for log in (to_wandb(wandb), to_mlflow(mlflow), to_tensorboard(writer)):
            log(step)
        self.assertEqual(wandb.calls, [(to_numbers(step), 7)])
        self.assertIn("trainer/mismatch/10.0.0.1/8000", mlflow.calls[0][0])
        self.assertEqual(sorted(name for name, _, _ in writer.calls), sorted(to_numbers(step)))


if __name__ == "__main__":
    unittest.main()
