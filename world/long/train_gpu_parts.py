"""The parts of examples/train-gpu on a CPU, with tiny models of random weights."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/train-gpu"))

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from trainer.adapter import ALPHA_OVER_RANK
from trainer.policy import Clip, Policy, TrainRow
from trainer.sharded import ShardedPolicy

torch.set_num_threads(1)
RECIPE = {"learning_rate": 1e-2, "beta2": 0.999, "bfloat16": False}


def write_model(folder: str, *, tied: bool) -> str:
    torch.manual_seed(1)
    sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    LlamaForCausalLM(LlamaConfig(**sizes, num_key_value_heads=2, tie_word_embeddings=tied)).save_pretrained(folder)
    return folder


def make_rows(count: int) -> list[TrainRow]:
    rows = []
    for at in range(count):
        ids = [(7 * at + 3 * step) % 64 for step in range(5 + at % 3)]
        # Every third token was inserted, as by a tool.
        mask = [int(step % 3 != 2) for step in range(len(ids))]
        # Near the logprobs of a model that knows nothing, ln 64 = 4.2, and far from them.
        recorded = [(-4.1 if step % 2 else -5.5) if one else 0.0 for step, one in enumerate(mask)]
        rows.append(TrainRow([1, 2, 3 + at], ids, mask, recorded, (-1.0) ** at * (1 + at % 2), at % 2))
    return rows


def gradients(policy: Policy, rows: list[TrainRow]) -> dict[str, torch.Tensor]:
    policy.add(rows, clip=Clip())
    return {name: one.grad.clone() for name, one in policy.model.named_parameters() if one.grad is not None}


class Parts(unittest.TestCase):
    def setUp(self) -> None:
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = self.scratch.name

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def open(self, *, tied: bool = False, rows_at_once: int = 64, **given: Any) -> Policy:
        torch.manual_seed(2)
        return Policy(write_model(self.path(f"model-{tied}"), tied=tied), "cpu", **RECIPE, rows_at_once=rows_at_once, **given)

    def close_to(self, left: torch.Tensor, right: torch.Tensor, what: str) -> None:
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-6, msg=lambda text: f"{what}: {text}")

    def test_gradients_accumulate_to_those_of_one_pass(self) -> None:
        rows = make_rows(7)
        whole = gradients(self.open(), rows)
        for name, one in gradients(self.open(rows_at_once=2), rows).items():
            self.close_to(one, whole[name], name)

    def test_tis_counts_each_token_by_its_truncated_ratio(self) -> None:
        rows, most = make_rows(4), 2.0
        policy = self.open(tis=most)
        found = gradients(policy, rows)
        other = self.open()
        logprobs, _ = other.logprobs(rows)
        recorded = torch.tensor([value for row in rows for value, one in zip(row.recorded, row.mask) if one])
        advantages = torch.tensor([row.advantage for row in rows for one in row.mask if one])
        weights = torch.tensor([min(most, math.exp(one)) for one in (logprobs - recorded).tolist()])
        self.assertTrue(0 < (weights == most).sum() < len(weights), "some ratios are truncated, some are not")
        (-(weights * advantages * logprobs).sum()).backward()
        for name, one in other.model.named_parameters():
            if one.grad is not None:
                self.close_to(found[name], one.grad, name)

    def test_tis_is_the_policy_gradient_where_the_engine_agrees(self) -> None:
        same = self.open().recompute(make_rows(4))
        with_tis, without = gradients(self.open(tis=2.0), same), gradients(self.open(), same)
        for name, one in with_tis.items():
            self.close_to(one, without[name], name)

    def test_an_output_layer_of_its_own_is_written(self) -> None:
        policy = self.open(tied=False)
        policy.add(make_rows(4), clip=Clip())
        policy.update()
        policy.write(self.path("out"), torch.float32)
        again = AutoModelForCausalLM.from_pretrained(self.path("out"), dtype=torch.float32)
        before = AutoModelForCausalLM.from_pretrained(self.path("model-False"), dtype=torch.float32)
        self.assertFalse(torch.equal(again.lm_head.weight, before.lm_head.weight), "it was trained")
        self.assertTrue(torch.equal(again.lm_head.weight, policy.model.lm_head.weight))

    def test_an_output_layer_that_is_the_embedding_is_written_once(self) -> None:
        policy = self.open(tied=True)
        policy.write(self.path("out"), torch.float32)
        names = set(load_file(self.path("out/model.safetensors")))
        self.assertIn("model.embed_tokens.weight", names)
        self.assertNotIn("lm_head.weight", names)

    def test_an_adapter_starts_as_the_model_and_trains_nothing_else(self) -> None:
        rows = make_rows(4)
        plain, policy = self.open(), self.open(lora_rank=4)
        before = {name: one.clone() for name, one in policy.model.named_parameters() if not one.requires_grad}
        self.assertTrue(torch.equal(plain.logprobs(rows)[0], policy.logprobs(rows)[0]))
        for _ in range(2):
            policy.add(rows, clip=Clip())
            policy.update()
        self.assertFalse(torch.allclose(plain.logprobs(rows)[0], policy.logprobs(rows)[0], atol=1e-3))
        for name, one in policy.model.named_parameters():
            if name in before:
                self.assertTrue(torch.equal(one, before[name]), name)

    def test_a_written_adapter_merged_into_the_model_gives_the_same_logprobs(self) -> None:
        rows = make_rows(4)
        policy = self.open(lora_rank=4)
        policy.add(rows, clip=Clip())
        policy.update()
        policy.write_adapter(self.path("adapter"))
        config = json.loads(Path(self.path("adapter/adapter_config.json")).read_text())
        self.assertEqual(config["lora_alpha"] / config["r"], ALPHA_OVER_RANK)
        weights = load_file(self.path("adapter/adapter_model.safetensors"))
        merged = self.open()
        state = merged.model.state_dict()
        with torch.no_grad():
            for name in [name for name in weights if name.endswith("lora_A.weight")]:
                layer = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
                state[f"{layer}.weight"] += ALPHA_OVER_RANK * weights[name.replace("lora_A", "lora_B")] @ weights[name]
        self.close_to(merged.logprobs(rows)[0], policy.logprobs(rows)[0], "logprobs")

    def test_two_processes_with_fsdp_make_the_step_of_one(self) -> None:
        rows = make_rows(5)
        for tied in (False, True):
            alone = self.open(tied=tied)
            measured = step(alone, rows)
            alone.write(self.path(f"alone-{tied}"), torch.float32)
            processes.spawn(make_sharded_step, args=(self.folder, tied), nprocs=2)
            found = json.loads(Path(self.path(f"measured-{tied}.json")).read_text())
            for name in ("tokens", "loss", "ratio_mean", "grad_norm", "mismatch_tokens"):
                self.assertAlmostEqual(found[name], measured[name], places=4, msg=f"{name}, tied {tied}")
            one, two = (load_file(self.path(f"{who}-{tied}/model.safetensors")) for who in ("alone", "sharded"))
            self.assertEqual(one.keys(), two.keys())
            for name in one:
                self.close_to(two[name], one[name], name)


def step(policy: Policy, rows: list[TrainRow]) -> dict[str, Any]:
    policy.imitate(rows[:3])
    policy.add(rows[:3], clip=Clip())
    policy.add(rows[3:], clip=Clip())
    return policy.update()


def make_sharded_step(rank: int, folder: str, tied: bool) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet-{tied}", rank=rank, world_size=2)
    torch.manual_seed(2)
    policy = ShardedPolicy(os.path.join(folder, f"model-{tied}"), "cpu", **RECIPE, rows_at_once=64)
    if rank != 0:
        policy.follow()
        return
    measured = step(policy, make_rows(5))
    policy.write(os.path.join(folder, f"sharded-{tied}"), torch.float32)
    policy.end()
    Path(folder, f"measured-{tied}.json").write_text(json.dumps(measured))


class Transfer(unittest.TestCase):
    def test_weights_for_the_gpu_are_those_of_the_file_with_the_types_that_are_announced(self) -> None:
        from trainer.cast_weights import CastWeights

        for tied in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                policy = Policy(write_model(folder, tied=tied), "cpu", **RECIPE, rows_at_once=8)
                source = CastWeights(policy, torch.bfloat16)
                sent = list(source)
                named = [(one.name, one.dtype, one.shape) for one in source.metadata()]
                self.assertEqual(named, [(name, one.dtype, tuple(one.shape)) for name, one in sent])
                self.assertEqual("lm_head.weight" in dict(sent), not tied)
                self.assertEqual([name for group, _ in source.iter_groups() for name in group], [name for name, _ in sent])


if __name__ == "__main__":
    unittest.main(verbosity=2)
