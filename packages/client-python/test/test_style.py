"""House rules for Python: small typed files with a first sentence, folders without import rings, standard library, Python 3.9 syntax."""

from __future__ import annotations

import ast
import unittest
from pathlib import Path

from house_rules import check_files, check_functions, imported_packages

PACKAGE = Path(__file__).resolve().parents[1]
SOURCES = sorted((PACKAGE / "src").rglob("*.py"))
FILES = SOURCES + [PACKAGE / "build_wheel.py"] + sorted((PACKAGE / "test").rglob("*.py"))

#: The standard library modules that the client uses. Add to this list on purpose.
MODULES = {
    "__future__", "array", "asyncio", "base64", "concurrent", "contextlib", "ctypes", "dataclasses", "datetime", "functools", "hashlib",
    "http", "importlib", "inspect", "itertools",
    "json", "math", "millrace", "os", "pathlib", "queue", "re", "socket", "struct", "sys", "threading", "time", "traceback", "types",
    "typing",
    "urllib", "uuid",
}  # fmt: skip


class StyleTest(unittest.TestCase):
    def test_every_file_is_small_and_opens_with_a_sentence(self) -> None:
        check_files(self, FILES)

    def test_every_file_is_valid_python_3_9_with_lazy_annotations(self) -> None:
        for path in FILES:
            tree = ast.parse(path.read_text(), feature_version=(3, 9))
            if path.name != "__init__.py":
                self.assertIn("from __future__ import annotations", path.read_text(), path)
            for node in ast.walk(tree):
                self.assertNotIn(type(node).__name__, ("Match", "TryStar"), path)

    def test_the_client_imports_only_the_standard_library(self) -> None:
        for path in SOURCES:
            self.assertLessEqual(imported_packages(path), MODULES, path)

    def test_no_folder_holds_more_than_15_files(self) -> None:
        for folder in {path.parent for path in FILES}:
            self.assertLessEqual(len([path for path in folder.iterdir() if path.is_file()]), 15, folder)

    def test_folders_import_each_other_in_one_direction(self) -> None:
        needs: dict[str, set[str]] = {}
        for path in SOURCES:
            folder = path.parent.name
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.level == 2 and "." in (node.module or ""):
                    needs.setdefault(folder, set()).add((node.module or "").split(".")[0])
        self.assertIn("wire", needs["rollouts"])
        while needs:
            free = [folder for folder, wanted in needs.items() if not wanted & set(needs)]
            self.assertNotEqual(free, [], f"these folders import each other in a ring: {needs}")
            for folder in free:
                del needs[folder]

    def test_every_function_is_short_and_typed(self) -> None:
        check_functions(self, SOURCES)


if __name__ == "__main__":
    unittest.main()
