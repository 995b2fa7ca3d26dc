"""slime's conversion of samples to training data, on what the rollout function returns. With MILLRACE_SLIME_SOURCES, the folder of slime's
sources, its own code runs, with its engines replaced by empty modules; otherwise a stand-in with the fields that slime documents."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import itertools
import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

HERE = Path(__file__).resolve().parent
sources = os.environ.get("MILLRACE_SLIME_SOURCES")
sys.path.insert(0, sources or str(HERE / "stand_in"))


class EmptyModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of engines that need GPUs: every name in them exists and does nothing."""

    NAMES = ("sglang", "sglang_router", "megatron", "mbridge", "apex", "transformer_engine", "flash_attn", "ring_flash_attn")

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in self.NAMES else None

    def create_module(self, spec: Any) -> ModuleType:
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__, module.__name__ = [], spec, spec.name
        return module  # type: ignore[return-value]

    def exec_module(self, module: ModuleType) -> None:
        pass


if sources:
    sys.meta_path.insert(0, EmptyModules())
    manager: Any = importlib.import_module("slime.ray.rollout").RolloutManager.__ray_metadata__.modified_class
else:
    manager = importlib.import_module("slime.ray.rollout").RolloutManager
Sample = importlib.import_module("slime.utils.types").Sample

from ledger_rows import read_ledger  # noqa: E402
from settings_report import choose_values, find_refusals, to_asked  # noqa: E402

from millrace_trainers import slime as adapter  # noqa: E402
from millrace_trainers.settings import SLIME  # noqa: E402

given = json.load(sys.stdin)
size = 4
settings = choose_values(SLIME)
args = SimpleNamespace(
    rollout_batch_size=len(given["tasks"]), n_samples_per_prompt=size, **settings, advantage_estimator="grpo",
    rewards_normalization=True, grpo_std_normalization=True, reward_key=None, load_debug_rollout_data=None,
)  # fmt: skip


class DataSource:
    """As slime's: groups of samples with growing indexes."""

    count = 0

    def get_samples(self, number: int) -> list[list[Any]]:
        groups = []
        for task in given["tasks"][:number]:
            group = []
            for _ in range(size):
                group.append(Sample(group_index=self.count // size, index=self.count, prompt=task["question"], metadata={"task": task}))
                self.count += 1
            groups.append(group)
        return groups


def convert(rollout_id: int, post_process: Any) -> dict[str, Any]:
    own = manager.__new__(manager)
    own.args, own.data_source, own.generate_rollout = args, DataSource(), adapter.generate_rollout
    own.custom_reward_post_process_func = post_process
    own.custom_convert_samples_to_train_data_func = None
    samples, metrics = own._get_rollout_data(rollout_id=rollout_id)
    data = own._convert_samples_to_train_data(samples)
    ids = [sample.session_id for sample in samples]
    rows = []
    for index, sample in enumerate(samples):
        mask = data["loss_masks"][index]
        response = data["tokens"][index][-data["response_lengths"][index] :]
        rows.append(
            {
                "rollout_id": ids[index],
                "id": data["rollout_ids"][index],
                "group": sample.group_index,
                "ids": data["tokens"][index],
                "sampled": list(itertools.compress(response, mask)),
                "logprobs": list(itertools.compress(data["rollout_log_probs"][index], mask)),
                "advantage": data["rewards"][index],
                "mask_sum": data["rollout_mask_sums"][index],
                "versions": sample.weight_versions,
                "status": sample.status.value,
            }
        )
    return {"rows": rows, "metrics": metrics, "ledger": read_ledger(adapter.open_source().client, ids)}


arrived = {
    "asked": to_asked(SLIME, settings),
    "refused": find_refusals(SLIME, lambda one: SLIME.read_config(SimpleNamespace(**one)), open_names=False),
}
report = {"settings": arrived, "own_code": bool(sources), "ours": convert(0, adapter.post_process_rewards), "theirs": convert(1, None)}
print(json.dumps(report))
