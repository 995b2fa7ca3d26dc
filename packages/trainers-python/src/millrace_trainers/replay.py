"""What trainers replay besides tokens, where the engine reported it: the experts of each token, and the ids it was sampled from."""

from __future__ import annotations

import itertools
import warnings
from typing import Optional, Sequence

from .train_rows import TrainRow


def to_routed_experts(row: TrainRow) -> Optional[list[list[list[int]]]]:
    """For each token of prompt and response but the last, the experts of each layer. None if the engine did not report them for every
    token, or only their number over all layers."""
    rows: list[list[list[int]]] = []
    for segment in () if row.row is None else row.row.segments:
        experts = segment.routed_experts
        if experts is None:
            continue
        if len(experts.shape) != 2 or experts.first != len(rows):
            return None
        layers, size = experts.shape
        ids = list(experts.ids)
        for start in range(0, len(ids), layers * size):
            rows.append([ids[at : at + size] for at in range(start, start + layers * size, size)])
    whole = len(row.prompt_ids) + len(row.response_ids)
    return rows[: whole - 1] if rows and len(rows) >= whole - 1 else None


def fill_routed_experts(rows: Sequence[TrainRow]) -> Optional[list[list[list[list[int]]]]]:
    """For trainers that need experts of every row of a batch: a row that trains nothing has some of one token, which no loss depends on.
    None if no row has them, or if one that trains has not: then nothing is replayed, and a warning names it."""
    found = [to_routed_experts(row) for row in rows]
    shape = next(((len(one[0]), len(one[0][0])) for one in found if one), None)
    if shape is None:
        return None
    missing = next((row.rollout.id for row, one in zip(rows, found) if not one and not row.placeholder), None)
    if missing is not None:
        warnings.warn(f"no experts are replayed: rollout {missing} was sampled without those of every token", stacklevel=2)
        return None
    dummy = [[list(range(shape[1])) for _ in range(shape[0])]]
    return [one or dummy for one in found]


def to_sampled_from(row: TrainRow) -> Optional[tuple[list[int], list[int]]]:
    """Ids and offsets: token i of the response was sampled from `ids[offsets[i]:offsets[i + 1]]`; from none where the mask is 0."""
    masks = None if row.row is None else row.row.sampling_mask
    if masks is None:
        return None
    cut = masks[: len(row.response_ids)]
    return list(itertools.chain.from_iterable(cut)), [0, *itertools.accumulate(len(one) for one in cut)]
