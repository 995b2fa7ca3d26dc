"""Rows as a Parquet file for offline use, with the columns of the JSON lines; `metadata` is JSON text. Written without a library."""

from __future__ import annotations

import json
import os
import struct
from itertools import islice
from typing import Any, Iterable, Union

from .jsonl import to_record
from .parquet_format import MAGIC, Column, column_chunk, file_metadata, row_group, schema_elements
from .rows import Row

_COLUMNS = (
    Column("rollout_id", "text"),
    Column("group", "text", "optional"),
    Column("scenario", "text"),
    Column("branch", "int32"),
    Column("reward", "double"),
    Column("stop_reason", "text", "optional"),
    Column("policy_version_first", "int64", "optional"),
    Column("policy_version_last", "int64", "optional"),
    Column("prompt_ids", "int32", "list"),
    Column("response_ids", "int32", "list"),
    Column("response_mask", "int32", "list"),
    Column("response_logprobs", "float", "list"),
    Column("metadata", "text", "optional"),
)
_ROWS_IN_GROUP = 1000


def write_parquet(path: Union[str, os.PathLike[str]], rows: Iterable[Row]) -> int:
    """Answers how many rows were written. What stood in the file is replaced; a file that was cut short is no Parquet file."""
    records = (_to_flat(row) for row in rows)
    groups: list[bytes] = []
    total = 0
    with open(path, "wb") as file:
        offset = file.write(MAGIC)
        while True:
            some = list(islice(records, _ROWS_IN_GROUP))
            if not some:
                break
            chunks = []
            start = offset
            for column in _COLUMNS:
                body, chunk = column_chunk(column, [one[column.name] for one in some], offset)
                offset += file.write(body)
                chunks.append(chunk)
            groups.append(row_group(chunks, offset - start, len(some)))
            total += len(some)
        metadata = file_metadata(schema_elements(_COLUMNS), total, groups)
        file.write(metadata + struct.pack("<I", len(metadata)) + MAGIC)
    return total


def _to_flat(row: Row) -> dict[str, Any]:
    record = to_record(row)
    if record["metadata"] is not None:
        record["metadata"] = json.dumps(record["metadata"], ensure_ascii=False)
    return record
