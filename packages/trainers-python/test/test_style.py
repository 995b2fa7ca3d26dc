"""House rules for Python: small typed files with a first sentence, and no trainer imported by what all adapters share."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

from house_rules import check_files, check_functions, imported_packages

PACKAGE = Path(__file__).resolve().parents[1]
SOURCES = sorted((PACKAGE / "src").rglob("*.py"))
WORLD = PACKAGE.parents[1] / "world" / "trainers"
FILES = SOURCES + sorted((PACKAGE / "test").rglob("*.py")) + sorted(WORLD.rglob("*.py"))
#: Imported by `import millrace_trainers`, so they need only the standard library and the client.
SHARED = (
    "__init__.py", "advantages.py", "logprobs.py", "replay.py", "rollouts.py", "settings.py", "train_rows.py", "turns.py",
    "versions.py",
)  # fmt: skip


class StyleTest(unittest.TestCase):
    def test_every_file_is_small_and_opens_with_a_sentence(self) -> None:
        check_files(self, FILES)

    def test_what_all_adapters_share_imports_only_the_client_and_the_standard_library(self) -> None:
        for path in SOURCES:
            if path.name in SHARED and path.parent.name == "millrace_trainers":
                self.assertLessEqual(imported_packages(path), {"millrace", *sys.stdlib_module_names}, path)

    def test_every_function_is_short_and_typed(self) -> None:
        check_functions(self, SOURCES)


if __name__ == "__main__":
    unittest.main()
