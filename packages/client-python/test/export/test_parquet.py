"""The Parquet file that is written without a library: its bytes are those of a file that pyarrow and DuckDB read back equal, and where
pyarrow is there it reads this one too."""

from __future__ import annotations

import importlib
import importlib.util
import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from export.test_export import make_branched, make_rows
from fakes.examples import make_rollout

from millrace.export import Row, to_rows, write_parquet
from millrace.export.jsonl import to_record

GOLDEN_FILE = Path(__file__).resolve().parents[1] / "golden" / "rows.parquet"


def make_all() -> list[Row]:
    """Texts and numbers that are there and that are not, and lists of one and of several."""
    return make_rows() + to_rows([(make_rollout(group=None, metadata=None, result=None), make_branched())])


def write(rows: list[Row]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        assert write_parquet(path, rows) == len(rows)
        return path.read_bytes()


class ParquetTest(unittest.TestCase):
    def test_the_bytes_are_those_of_the_file_that_other_readers_read(self) -> None:
        self.assertEqual(write(make_all()), GOLDEN_FILE.read_bytes())

    def test_the_footer_says_where_it_begins(self) -> None:
        for rows in ([], make_all()):
            data = write(rows)
            self.assertEqual((data[:4], data[-4:]), (b"PAR1", b"PAR1"))
            length = int.from_bytes(data[-8:-4], "little")
            self.assertEqual(data[-8 - length :][:4], bytes([0x15, 2, 0x19, 0xFC]))  # Version 1, then a list of over 14 structs.

    def test_a_reader_sees_the_rows_that_were_written(self) -> None:
        if importlib.util.find_spec("pyarrow") is None:
            return  # The bytes above are what a reader has seen.
        parquet: Any = importlib.import_module("pyarrow.parquet")
        wanted = [to_record(row) for row in make_all()]
        for one in wanted:
            one["metadata"] = None if one["metadata"] is None else json.dumps(one["metadata"])
        self.assertEqual(parquet.read_table(GOLDEN_FILE).to_pylist(), wanted)


if __name__ == "__main__":
    unittest.main()
