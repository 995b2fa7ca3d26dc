"""Times VeRL-Tool's own bash tool, from its sources: milliseconds of each call of one trajectory, without HTTP and without a sandbox."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import time
import types
from pathlib import Path

given = json.load(sys.stdin)
os.chdir(given["folder"])
# It uses only what the standard library's module has as well.
sys.modules.setdefault("regex", re)
tools = types.ModuleType("tools")
tools.__path__ = []  # type: ignore[attr-defined]
base = types.ModuleType("tools.base")
base.BaseTool = type("BaseTool", (), {"__init__": lambda self, num_workers=1: setattr(self, "env_cache", {})})  # type: ignore[attr-defined]
base.register_tool = lambda tool: tool  # type: ignore[attr-defined]
sys.modules.update({"tools": tools, "tools.base": base})
folder = Path(given["sources"]) / "verl_tool" / "servers" / "tools"
for name, path in (("tools.utils.bash_session", "utils/bash_session.py"), ("tools.bash_terminal", "bash_terminal.py")):
    spec = importlib.util.spec_from_file_location(name, folder / path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

tool = sys.modules["tools.bash_terminal"].BashTerminalTool()
tool.use_firejail = False
tool.conduct_action("timed", "<bash>true</bash>", {})
found = []
for call in range(given["calls"]):
    start = time.perf_counter()
    observation, _done, valid = tool.conduct_action("timed", f"<bash>echo {call}</bash>", {})
    found.append(1000 * (time.perf_counter() - start))
    assert valid and str(call) in observation, observation
tool.delete_env("timed")
print(json.dumps(found))
