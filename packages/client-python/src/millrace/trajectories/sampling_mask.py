"""Which tokens each token was sampled from: the ids that top-k, top-p and min-p left, for each sampled token."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

from ..wire.codec import WireError


@dataclass(frozen=True)
class SamplingMask:
    #: `array('i')`: the number of ids for each sampled token.
    lengths: array[int]
    #: `array('i')`: the ids of all tokens in turn.
    token_ids: array[int]

    def rows(self) -> list[list[int]]:
        """One list of ids for each sampled token."""
        rows: list[list[int]] = []
        at = 0
        for length in self.lengths:
            rows.append(list(self.token_ids[at : at + length]))
            at += length
        return rows


def mask_from_json(value: Any, where: str) -> SamplingMask:
    try:
        return SamplingMask(array("i", [len(row) for row in value]), array("i", [one for row in value for one in row]))
    except (TypeError, OverflowError) as error:
        raise WireError(f"{where}: expected a list of ids for each token: {error!r}") from error
