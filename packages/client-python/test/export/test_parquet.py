"""Rows as Parquet. With pyarrow installed, its reader returns exactly the rows that were written; without it, the call says how to
get it."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import struct
import tempfile
import unittest
from pathlib import Path
from typing import Any, Iterator

from export.test_export import make_branched, make_rows
from fakes.examples import make_rollout

from millrace.export import Row, to_rows, write_parquet
from millrace.export.jsonl import to_record

HAS_PYARROW = importlib.util.find_spec("pyarrow") is not None
TEXTS = ("", "\0", "☃", '"\\\n', "a" * 70_000, "𝕏\u202e")
IDS: tuple[list[int], ...] = ([], [0], [-(2**31), 2**31 - 1], list(range(500)))
REWARDS = (0.0, -0.5, 5e-324, 1e300)


def make_hostile(count: int) -> Iterator[Row]:
    """Rows with odd texts, empty lists, extreme numbers and every optional field absent in turn."""
    [row, _] = make_rows()
    for index in range(count):
        ids = list(IDS[index % len(IDS)])
        logprobs = [struct.unpack("f", struct.pack("f", -0.1 * one))[0] for one in range(len(ids))]
        metadata = None if index % 3 == 0 else {TEXTS[index % len(TEXTS)]: [2**70, None, TEXTS[-1]]}
        rollout = dataclasses.replace(row.rollout, id=f"r-{index}", group=None if index % 2 else "☃", metadata=metadata)
        changes: dict[str, Any] = {"prompt_ids": ids, "response_ids": ids, "response_mask": [1] * len(ids)}
        yield dataclasses.replace(row, rollout=rollout, reward=REWARDS[index % 4], response_logprobs=logprobs, **changes)


def to_columns(row: Row) -> dict[str, Any]:
    record = to_record(row)
    texts = ("provenances", "metadata", "score", "messages", "tools", "task")
    return {**record, **{name: None if record[name] is None else json.dumps(record[name], ensure_ascii=False) for name in texts}}


class ParquetTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_without_pyarrow_the_error_says_how_to_install_it(self) -> None:
        if HAS_PYARROW:
            return
        with self.assertRaisesRegex(ModuleNotFoundError, r"pip install 'millrace\[parquet\]'"):
            write_parquet(self.folder / "rows.parquet", make_rows())
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_reader_returns_the_rows_that_were_written(self) -> None:
        if not HAS_PYARROW:
            return
        parquet: Any = importlib.import_module("pyarrow.parquet")
        path = self.folder / "rows.parquet"
        optional = to_rows([(make_rollout(group=None, metadata=None, result=None), make_branched())])
        for rows in ([], make_rows() + optional, list(make_hostile(2501))):
            self.assertEqual(write_parquet(path, iter(rows)), len(rows))
            file = parquet.ParquetFile(path)
            self.assertEqual(file.read().to_pylist(), [to_columns(row) for row in rows])
            self.assertEqual(file.num_row_groups, (len(rows) + 999) // 1000)

    def test_a_write_that_fails_leaves_the_existing_file_and_nothing_else(self) -> None:
        if not HAS_PYARROW:
            return
        path = self.folder / "rows.parquet"
        write_parquet(path, make_rows())
        before = path.read_bytes()

        def fail() -> Iterator[Row]:
            yield from make_hostile(1500)
            raise RuntimeError("the source broke")

        with self.assertRaisesRegex(RuntimeError, "the source broke"):
            write_parquet(path, fail())
        self.assertEqual(path.read_bytes(), before)
        self.assertEqual(list(self.folder.iterdir()), [path])


if __name__ == "__main__":
    unittest.main()
