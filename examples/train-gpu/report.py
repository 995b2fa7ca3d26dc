#!/usr/bin/env python3
"""The figures of docs/training.md as tables, with the standard library alone: report.py held-out RUN…, report.py time RUN… or
report.py tokens RUN…. A run is a folder with steps.jsonl, or such a file; those of docs/training.md are in results/."""

from __future__ import annotations

import os
import sys
from typing import Sequence

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here]

from trainer.options import TASKS  # noqa: E402
from trainer.runs import Run, read_run  # noqa: E402

Row = Sequence[str]


def held_out(runs: Sequence[Run]) -> list[Row]:
    """Accuracy on held-out tasks, by kind, at four points of each run."""
    titles = TASKS[runs[0].options["task"]].titles
    rows: list[Row] = [("held out, 4 samples each", *titles.values(), "mean")]
    for run in runs:
        last = len(run.held_out) - 1
        for at in dict.fromkeys((0, min(1, last), last // 2, last)):
            one = run.held_out[at]
            accuracy = [f"{one['by_kind'][kind]:.3f}" for kind in titles]
            rows.append((f"`{run.name}`, {one['step']} steps, {one['wall_s']:.0f} s", *accuracy, f"{one['mean']:.3f}"))
    return rows


def time(runs: Sequence[Run]) -> list[Row]:
    """Where the time went, and the cores that each program used."""
    rows: list[Row] = [("", *(f"`{run.name}`" for run in runs))]

    def add(title: str, *values: str) -> None:
        rows.append((title, *values))

    add("steps", *(str(len(run.steps)) for run in runs))
    add("seconds a step", *(f"{run.step_s / len(run.steps):.2f}" for run in runs))
    add("groups judged a step", *(f"{sum(one['groups_judged'] for one in run.steps) / len(run.steps):.0f}" for run in runs))
    add("groups trained a step", *(f"{sum(one['groups'] for one in run.steps) / len(run.steps):.1f}" for run in runs))
    add("rollouts a second", *(f"{sum(one['rollouts_per_s'] * one['step_s'] for one in run.steps) / run.seconds:.0f}" for run in runs))
    for name, title in (("sampling", "vLLM samples"), ("training", "the trainer trains"), ("waiting", "neither")):
        add(title, *(f"{run.mean(lambda one, name=name: one[f'share_{name}']):.0%}" for run in runs))  # type: ignore[misc]
    add("busy, says nvidia-smi", *(f"{run.mean(lambda one: one['gpu_busy']):.0%}" for run in runs))
    for name, title in (("collect", "waits for groups"), ("train", "trains"), ("write", "writes weights"), ("pause", "waits at the gate"), ("reload", "vLLM loads")):
        add(f"trainer: {title}", *(f"{run.share(name):.0%}" for run in runs))
    for name in ("vllm api", "vllm engine", "trainer", "service", "workers", "sandboxes"):
        add(f"cores: {name}", *(f"{sum(one['cpu_s'].get(name, 0.0) for one in run.steps) / run.seconds:.2f}" for run in runs))
    return rows


def tokens(runs: Sequence[Run]) -> list[Row]:
    """How far recorded and recomputed log-probabilities are apart, and how stale the rows were."""
    rows: list[Row] = [("", *(f"`{run.name}`" for run in runs))]
    found = [[one["mismatch_mean"] for one in run.steps if one.get("mismatch_mean") is not None] for run in runs]
    rows.append(("mean difference, first 20 steps", *(f"{sum(some[:20]) / len(some[:20]):.4f}" for some in found)))
    rows.append(("mean difference, last 20 steps", *(f"{sum(some[-20:]) / len(some[-20:]):.4f}" for some in found)))
    rows.append(("largest difference", *(f"{max(one.get('mismatch_max') or 0.0 for one in run.steps):.2f}" for run in runs)))
    updates = [[one for one in run.steps if one.get("tokens")] for run in runs]
    rows.append(("importance ratio, mean", *(f"{sum(one['ratio_mean'] for one in some) / len(some):.4f}" for some in updates)))
    rows.append(("smallest, largest ratio", *(f"{min(one['ratio_min'] for one in some):.3f}, {max(one['ratio_max'] for one in some):.1f}" for some in updates)))
    rows.append(("tokens clipped", *(f"{sum(one['clipped_share'] for one in some) / len(some):.2%}" for some in updates)))
    rows.append(("staleness, mean", *(f"{run.mean(lambda one: one['staleness_mean']):.2f}" for run in runs)))
    rows.append(("entropy, first and last 10 steps", *(f"{entropy(some[:10]):.2f}, {entropy(some[-10:]):.2f}" for some in updates)))
    size = [run.options["group_size"] for run in runs]
    rows.append(("rows whose text gives other tokens", *(f"{changed(run.steps, n):.1%}" for run, n in zip(runs, size))))
    rows.append(("the same, last 20 steps", *(f"{changed(run.steps[-20:], n):.1%}" for run, n in zip(runs, size))))
    rows.append(("failed or stale rollouts", *(str(sum(one["wasted_rollouts"].get(name, 0) for one in run.steps for name in ("failed", "stale"))) for run in runs)))
    return rows


def changed(steps: Sequence[dict[str, int]], group_size: int) -> float:
    return sum(one["retokenised_rows"] for one in steps) / (group_size * sum(one["groups"] for one in steps))


def entropy(steps: Sequence[dict[str, float]]) -> float:
    return sum(one["entropy"] for one in steps) / len(steps)


TABLES = {"held-out": held_out, "time": time, "tokens": tokens}


def main() -> None:
    if len(sys.argv) < 3 or sys.argv[1] not in TABLES:
        sys.exit(f"usage: report.py {'|'.join(TABLES)} RUN…")
    head, *rows = TABLES[sys.argv[1]]([read_run(path) for path in sys.argv[2:]])
    for row in (head, ["---", *["---:"] * (len(head) - 1)], *rows):
        print("|" + "|".join(f" {cell} " for cell in row).replace(" --- ", "---").replace(" ---: ", "---:") + "|")


if __name__ == "__main__":
    main()
