"""House rules for Python: small typed files with a first sentence, and no trainer imported by what all adapters share."""

from __future__ import annotations

import ast
import sys
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
SOURCES = sorted((PACKAGE / "src").rglob("*.py"))
WORLD = PACKAGE.parents[1] / "world" / "trainers"
FILES = SOURCES + sorted((PACKAGE / "test").rglob("*.py")) + sorted(WORLD.rglob("*.py"))
#: Imported by `import millrace_trainers`, so they need only the standard library and the client.
SHARED = ("__init__.py", "advantages.py", "replay.py", "rollouts.py", "train_rows.py", "turns.py")


class StyleTest(unittest.TestCase):
    def test_every_file_is_small_and_opens_with_a_sentence(self) -> None:
        for path in FILES:
            text = path.read_text()
            self.assertLessEqual(len(text.splitlines()), 300, path)
            self.assertRegex(ast.get_docstring(ast.parse(text)) or "", r"[A-Za-z][^.]*\.(\s|$)", path)
            self.assertLessEqual(max(len(line) for line in text.splitlines()), 140, path)

    def test_what_all_adapters_share_imports_only_the_client_and_the_standard_library(self) -> None:
        allowed = {"millrace", *sys.stdlib_module_names}
        for path in SOURCES:
            if path.name not in SHARED or path.parent.name != "millrace_trainers":
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.level == 0:
                    names.append(node.module or "")
                self.assertLessEqual({name.split(".")[0] for name in names}, allowed, path)

    def test_every_function_is_short_and_typed(self) -> None:
        for path in SOURCES:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    where = f"{path}:{node.lineno}"
                    self.assertLessEqual((node.end_lineno or 0) - node.lineno + 1, 60, where)
                    self.assertIsNotNone(node.returns, where)
                    given = [one for one in (*node.args.args, *node.args.kwonlyargs) if one.arg not in ("self", "cls")]
                    self.assertTrue(all(one.annotation is not None for one in given), where)


if __name__ == "__main__":
    unittest.main()
