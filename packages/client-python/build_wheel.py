"""Builds the wheel from a copy of this folder, so that the build leaves no files here: `python3 build_wheel.py [folder]`.
The folder is `dist` by default; `--package` names the folder of another package. Prints the path of the wheel. `--offline` uses the
installed setuptools instead of downloading one."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
PARTS = ("pyproject.toml", "README.md", "LICENSE", "src")


def build_wheel(package: Path, folder: Path, *, offline: bool) -> Path:
    with tempfile.TemporaryDirectory() as temporary:
        copy, built = Path(temporary) / "copy", Path(temporary) / "built"
        copy.mkdir()
        for part in PARTS:
            _copy(package / part, copy / part)
        options = ["--no-deps", "--no-cache-dir", "--quiet", *(["--no-build-isolation"] if offline else [])]
        subprocess.run([sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(built), str(copy)], check=True)
        [wheel] = built.glob("*.whl")
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, folder))


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    else:
        shutil.copy(source, target)


def main() -> None:
    parser = argparse.ArgumentParser(description="Builds the wheel of a Python package.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("dist"), help="where the wheel goes; dist by default")
    parser.add_argument("--package", type=Path, default=PACKAGE, help="the folder of the package; the client's by default")
    parser.add_argument("--offline", action="store_true", help="use the installed setuptools and wheel instead of downloading them")
    arguments = parser.parse_args()
    print(build_wheel(arguments.package, arguments.folder, offline=arguments.offline))


if __name__ == "__main__":
    main()
