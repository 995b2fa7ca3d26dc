"""What a trainer would train on if it kept texts instead of tokens: the row decoded as one text, and that text tokenised again. Chat
templates may change the text as well, so this is the mildest form of it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from itertools import accumulate
from typing import Any

from .policy import TrainRow


def retokenise(tokenizer: Any, row: TrainRow) -> TrainRow:
    """The row itself if its tokens come back the same; otherwise new ids and a new mask, with 0.0 for every log-probability."""
    ids = row.prompt_ids + row.response_ids
    text = tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    if encoded["input_ids"] == ids:
        return row
    # Where each run of equal mask begins in the text; characters of several tokens are shared out by decoding whole runs.
    mask = [0] * len(row.prompt_ids) + row.mask
    begins = [0, *(at for at in range(1, len(mask)) if mask[at] != mask[at - 1])]
    texts = [tokenizer.decode(ids[one:two], skip_special_tokens=False, clean_up_tokenization_spaces=False) for one, two in zip(begins, [*begins[1:], len(ids)])]
    starts = [0, *accumulate(len(one) for one in texts)][:-1]
    new_mask = [mask[begins[bisect_right(starts, start) - 1]] for start, _ in encoded["offset_mapping"]]
    first = next((at for at, one in enumerate(new_mask) if one), len(new_mask))
    new_ids = encoded["input_ids"]
    rest = new_mask[first:]
    return replace(row, prompt_ids=new_ids[:first], response_ids=new_ids[first:], mask=rest, recorded=[0.0] * len(rest))
