"""Runs the cells of a notebook in IPython, without Jupyter: `python3 run_notebook.py FILE`. Fails with the first cell that fails."""

from __future__ import annotations

import json
import sys

from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
with open(sys.argv[1], encoding="utf-8") as file:
    cells = json.load(file)["cells"]
for cell in cells:
    if cell["cell_type"] == "code" and not shell.run_cell("".join(cell["source"])).success:
        sys.exit(1)
