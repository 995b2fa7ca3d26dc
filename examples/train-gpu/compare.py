#!/usr/bin/env python3
"""Draws what docs/training.md compares as one SVG, with the standard library alone: compare.py OUT.svg RESULTS, a folder with the logs."""

from __future__ import annotations

import os
import sys
from typing import Mapping, Sequence

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here]

from draw import COLOURS, HEIGHT, WIDTH, Panel, points, write_picture  # noqa: E402
from trainer.options import TASKS  # noqa: E402
from trainer.runs import Run, read_run  # noqa: E402

CURVES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "arithmetic, held out": {"with the service": ("math", "math-1", "math-2"), "without a service": ("baseline",)},
    "chores, held out": {"sampled tokens": ("shell", "shell-1", "shell-2"), "retokenised": ("shell-retokenised",)},
}
BARS = {"without the tool": "math", "with the tool": "math-tools"}


def draw_curves(title: str, lines: Mapping[str, Sequence[Run]]) -> Panel:
    panel = Panel(title, right=max(one["step"] for runs in lines.values() for run in runs for one in run.held_out))
    for (name, runs), colour in zip(lines.items(), (COLOURS[0], COLOURS[3])):
        for at, run in enumerate(runs):
            panel.line(points(run.held_out, lambda one: one["mean"]), colour, "" if at else name, dots=True)
    return panel


def draw_bars(title: str, runs: Mapping[str, Run]) -> Panel:
    """The last held-out accuracy of each run, by kind."""
    panel = Panel(title, right=0, marks=False)
    kinds = TASKS[next(iter(runs.values())).options["task"]].titles
    across = WIDTH / len(kinds)
    for at, ((legend, run), colour) in enumerate(zip(runs.items(), (COLOURS[0], COLOURS[2]))):
        for index, kind in enumerate(kinds):
            height = HEIGHT * run.held_out[-1]["by_kind"][kind]
            x, width = across * (index + 0.12 + 0.4 * at), across * 0.36
            panel.parts.append(f'<rect x="{x:.1f}" y="{HEIGHT - height:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>')
        panel.names.append((legend, colour))
    for index, words in enumerate(kinds.values()):
        first, _, rest = words.replace("1 × 2", "1×2").partition(" ")
        for line, word in enumerate((first, rest)):
            panel.parts.append(f'<text x="{across * (index + 0.5):.1f}" y="{HEIGHT + 11 + 9 * line}" text-anchor="middle" font-size="9">{word}</text>')
    return panel


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: compare.py OUT.svg RESULTS")
    find = lambda name: read_run(os.path.join(sys.argv[2], f"{name}.jsonl.gz"))  # noqa: E731
    panels = [draw_curves(title, {name: [find(one) for one in runs] for name, runs in lines.items()}) for title, lines in CURVES.items()]
    panels.append(draw_bars("arithmetic by kind, held out", {name: find(one) for name, one in BARS.items()}))
    write_picture(sys.argv[1], "Training runs compared", [panels])


if __name__ == "__main__":
    main()
