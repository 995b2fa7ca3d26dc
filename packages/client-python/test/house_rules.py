"""House rules that both Python packages are held to: small files that open with a sentence, short and typed functions."""

from __future__ import annotations

import ast
import unittest
from pathlib import Path
from typing import Iterable


def check_files(case: unittest.TestCase, files: Iterable[Path]) -> None:
    for path in files:
        text = path.read_text()
        case.assertLessEqual(len(text.splitlines()), 300, path)
        case.assertRegex(ast.get_docstring(ast.parse(text)) or "", r"[A-Za-z][^.]*\.(\s|$)", path)
        case.assertLessEqual(max(len(line) for line in text.splitlines()), 140, path)


def check_functions(case: unittest.TestCase, sources: Iterable[Path]) -> None:
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                where = f"{path}:{node.lineno}"
                case.assertLessEqual((node.end_lineno or 0) - node.lineno + 1, 60, where)
                case.assertIsNotNone(node.returns, where)
                given = [one for one in (*node.args.args, *node.args.kwonlyargs) if one.arg not in ("self", "cls")]
                case.assertTrue(all(one.annotation is not None for one in given), where)


def imported_packages(path: Path) -> set[str]:
    """The first names of what a file imports, but for what is in its own package."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.append(node.module or "")
    return {name.split(".")[0] for name in names}
