#!/usr/bin/env python3
"""Draws runs of train.py as one SVG, with the standard library alone: draw.py OUT.svg RUN… (folders with steps.jsonl, or such files).
Those joined with commas are seeds of one run.

One row for each run: the reward of its steps with the held-out mean, of every seed; and of the first seed held-out accuracy by kind, what
the GPU did, how far recorded and recomputed log-probabilities are apart, and the cores that each program used, where that was measured."""

from __future__ import annotations

import os
import sys
from html import escape
from typing import Any, Callable, Optional, Sequence

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here]

from trainer.options import TASKS  # noqa: E402
from trainer.runs import read_run, seconds_of  # noqa: E402

COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed")
WIDTH, HEIGHT, LEFT, TOP = 270, 190, 48, 56
Points = Sequence[tuple[float, float]]


class Panel:
    """One chart with a linear horizontal axis and a vertical axis from 0, or a logarithmic one."""

    def __init__(self, title: str, *, right: float, top: float = 1.0, bottom: float = 0.0, marks: bool = True) -> None:
        self.title, self.right, self.top, self.bottom, self.marks = title, max(1.0, right), top, bottom, marks
        self.parts: list[str] = []
        self.names: list[tuple[str, str]] = []

    def line(self, points: Points, colour: str, name: str, *, dots: bool = False) -> None:
        if not points:
            return
        at = [self._at(*one) for one in points]
        if dots:
            self.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>' for x, y in at]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        if name:
            self.names.append((name, colour))

    def render(self, x: float, y: float) -> str:
        lines = []
        for index in range(5):
            value = self.bottom + (self.top - self.bottom) * index / 4
            height = self._at(0, value)[1]
            lines.append(f'<line x1="0" x2="{WIDTH}" y1="{height:.1f}" y2="{height:.1f}" stroke="#e5e7eb"/>')
            lines.append(f'<text x="-6" y="{height + 4:.1f}" text-anchor="end">{value:.3g}</text>')
            step = self.right * index / 4
            if self.marks:
                lines.append(f'<text x="{self._at(step, self.bottom)[0]:.1f}" y="{HEIGHT + 16}" text-anchor="middle">{step:.0f}</text>')
        legend = "".join(
            f'<text x="{4 + 112 * (at % 2)}" y="{HEIGHT + 32 + 14 * (at // 2)}" fill="{colour}">{escape(name)}</text>'
            for at, (name, colour) in enumerate(self.names)
        )
        title = f'<text x="0" y="-10" font-weight="600">{escape(self.title)}</text>'
        return f'<g transform="translate({x:.0f},{y:.0f})">{title}{"".join(lines)}{"".join(self.parts)}{legend}</g>'

    def _at(self, x: float, y: float) -> tuple[float, float]:
        share = (min(max(y, self.bottom), self.top) - self.bottom) / (self.top - self.bottom)
        return WIDTH * x / self.right, HEIGHT * (1 - share)


def points(lines: Sequence[dict[str, Any]], value: Callable[[dict[str, Any]], Optional[float]]) -> list[tuple[float, float]]:
    return [(float(one["step"]), float(found)) for one in lines if (found := value(one)) is not None]


def draw_run(folders: str) -> list[Panel]:
    seeds = [read_run(folder) for folder in folders.split(",")]
    first = seeds[0]
    steps = first.steps
    right = max([one["step"] for run in seeds for one in (*run.steps, *run.held_out)], default=1)
    reward = Panel(f"{first.name}: mean reward" + (f", {len(seeds)} seeds" if len(seeds) > 1 else ""), right=right)
    for at, run in enumerate(seeds):
        reward.line(points(run.steps, lambda one: one["reward"]), COLOURS[0], "" if at else "sampled")
        reward.line(points(run.held_out, lambda one: one["mean"]), COLOURS[3], "" if at else "held out", dots=True)
    kinds = Panel("held out, by kind", right=right)
    for (kind, title), colour in zip(TASKS[first.options["task"]].titles.items(), COLOURS):
        kinds.line(points(first.held_out, lambda one, kind=kind: one["by_kind"][kind]), colour, title, dots=True)  # type: ignore[misc]
    gpu = Panel("the GPU: share of a step's time", right=right)
    for key, title, colour in (("sampling", "samples", COLOURS[0]), ("training", "trains", COLOURS[2]), ("waiting", "waits", COLOURS[3])):
        gpu.line(points(smooth(steps, lambda one, key=key: one[f"share_{key}"] * seconds_of(one)), lambda one: one["value"]), colour, title)  # type: ignore[misc]
    difference = [one["mismatch_mean"] for one in steps if one.get("mismatch_mean") is not None]
    exact = Panel("recorded − recomputed logprob, mean |Δ|", right=right, top=max([*difference, 0.02 if max(difference, default=1) > 1e-4 else 1e-9]) * 1.1)
    exact.line(points(steps, lambda one: one.get("mismatch_mean")), COLOURS[4], "same weights")
    return [reward, kinds, gpu, exact, *draw_cores(steps, right)]


def draw_cores(steps: Sequence[dict[str, Any]], right: float) -> list[Panel]:
    """How many cores each program kept busy. Runs from before this was measured have no such panel."""
    names = sorted({name for one in steps for name in one.get("cpu_s", {})})
    if not names:
        return []
    lines = {name: smooth(steps, lambda one, name=name: one["cpu_s"].get(name, 0.0)) for name in names}  # type: ignore[misc]
    cores = Panel("cores in use", right=right, top=max([1.0, *(one["value"] for some in lines.values() for one in some)]) * 1.1)
    for at, name in enumerate(names):
        cores.line(points(lines[name], lambda one: one["value"]), [*COLOURS, "#0891b2"][at % 6], name)
    return [cores]


def smooth(steps: Sequence[dict[str, Any]], seconds: Callable[[dict[str, Any]], float], width: int = 5) -> list[dict[str, Any]]:
    """The seconds of the last few steps as a share of their time, evaluations included."""
    found = []
    for at in range(len(steps)):
        some = steps[max(0, at - width + 1) : at + 1]
        found.append({"step": steps[at]["step"], "value": sum(map(seconds, some)) / sum(map(seconds_of, some))})
    return found


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit("usage: draw.py OUT.svg RUN…")
    write_picture(sys.argv[1], "Training runs: reward, held-out share, timing", [draw_run(folders) for folders in sys.argv[2:]])


def write_picture(path: str, title: str, rows: Sequence[Sequence[Panel]]) -> None:
    across, down = WIDTH + LEFT + 24, HEIGHT + TOP + 56
    body = "".join(panel.render(LEFT + across * x, TOP + down * y) for y, row in enumerate(rows) for x, panel in enumerate(row))
    size = f'width="{across * max(len(row) for row in rows) + 24}" height="{down * len(rows) + 16}"'
    style = 'font-family="system-ui, sans-serif" font-size="11" fill="#111827"'
    with open(path, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}><title>{title}</title><rect width="100%" height="100%" fill="#fff"/>{body}</svg>\n')


if __name__ == "__main__":
    main()
