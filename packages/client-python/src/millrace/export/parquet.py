"""Rows as a Parquet file for offline use, with the columns of the JSON lines; objects and lists of objects are JSON text. Needs pyarrow."""

from __future__ import annotations

import importlib
import json
import os
from itertools import islice
from typing import Any, Iterable, Union

from .jsonl import to_record
from .rows import Row

_ROWS_IN_GROUP = 1000
#: The columns that hold JSON.
_TEXTS = ("provenances", "metadata", "score", "messages", "tools", "task")


def write_parquet(path: Union[str, os.PathLike[str]], rows: Iterable[Row]) -> int:
    """Returns how many rows were written. The file appears, or replaces an existing one, only when it is complete."""
    arrow, parquet = _import_pyarrow()
    schema = _to_schema(arrow)
    records = (_to_flat(row) for row in rows)
    partial = f"{os.fspath(path)}.partial"
    count = 0
    try:
        with parquet.ParquetWriter(partial, schema, compression="zstd") as writer:
            while True:
                some = list(islice(records, _ROWS_IN_GROUP))
                if not some:
                    break
                writer.write_table(arrow.Table.from_pylist(some, schema=schema))
                count += len(some)
        os.replace(partial, path)
    except BaseException:
        _remove(partial)
        raise
    return count


def _import_pyarrow() -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        message = "write_parquet needs pyarrow: pip install 'millrace[parquet]'; write_jsonl writes the same columns without it"
        raise ModuleNotFoundError(message, name=error.name) from error


def _to_schema(arrow: Any) -> Any:
    def column(name: str, kind: Any, *, optional: bool = False) -> Any:
        return arrow.field(name, kind, optional)

    def numbers(name: str, kind: Any) -> Any:
        return column(name, arrow.list_(arrow.field("element", kind, False)))

    return arrow.schema(
        [
            column("rollout_id", arrow.string()),
            column("group", arrow.string(), optional=True),
            column("scenario", arrow.string()),
            column("branch", arrow.int32()),
            column("reward", arrow.float64()),
            column("stop_reason", arrow.string(), optional=True),
            column("policy_version_first", arrow.int64(), optional=True),
            column("policy_version_last", arrow.int64(), optional=True),
            numbers("prompt_ids", arrow.int32()),
            numbers("response_ids", arrow.int32()),
            numbers("response_mask", arrow.int32()),
            numbers("response_logprobs", arrow.float32()),
            column("provenances", arrow.string()),
            column("metadata", arrow.string(), optional=True),
            column("score", arrow.string()),
            column("messages", arrow.string()),
            column("tools", arrow.string()),
            column("task", arrow.string(), optional=True),
        ]
    )


def _to_flat(row: Row) -> dict[str, Any]:
    record = to_record(row)
    for name in _TEXTS:
        if record[name] is not None:
            record[name] = json.dumps(record[name], ensure_ascii=False)
    return record


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except FileNotFoundError:
        pass  # The writer failed before it created the file.
