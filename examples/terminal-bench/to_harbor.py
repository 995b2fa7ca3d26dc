"""Turns task folders of Terminal-Bench 1 into folders of Harbor, as Harbor's own `tasks migrate` does: the Dockerfile, the tests and the
solution stay as they are, and the exit code of the tests becomes the reward."""

import json
import os
import shutil
import sys

import yaml

APART = {"task.yaml", "docker-compose.yaml", "solution.sh", "run-tests.sh", "tests"}
REWARD = """
if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
"""


def convert(source, target):
    with open(os.path.join(source, "task.yaml"), encoding="utf-8") as file:
        task = yaml.safe_load(file)
    environment = os.path.join(target, "environment")
    shutil.copytree(source, environment, ignore=lambda folder, names: APART & set(names) if folder == source else set())
    with open(os.path.join(environment, "Dockerfile"), "a", encoding="utf-8") as file:
        file.write("\nENV TEST_DIR=/tests\n")
    shutil.copytree(os.path.join(source, "tests"), os.path.join(target, "tests"))
    os.makedirs(os.path.join(target, "solution"))
    shutil.copy(os.path.join(source, "solution.sh"), os.path.join(target, "solution", "solve.sh"))
    with open(os.path.join(source, "run-tests.sh"), encoding="utf-8") as file:
        script = file.read().rstrip("\n").replace("$TEST_DIR", "/tests")
    write(os.path.join(target, "tests", "test.sh"), script + REWARD)
    write(os.path.join(target, "instruction.md"), task["instruction"].rstrip("\n") + "\n")
    write(os.path.join(target, "task.toml"), render(os.path.basename(source), task))


def render(name, task):
    """Their base images have the working directory /app, which is not in the Dockerfiles."""
    return f"""schema_version = "1.4"

[task]
name = {json.dumps(f"terminal-bench/{name}")}

[agent]
timeout_sec = {float(task.get("max_agent_timeout_sec", 360))}

[verifier]
timeout_sec = {float(task.get("max_test_timeout_sec", 60))}

[environment]
workdir = "/app"
"""


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


def main(tasks, out, *names):
    for name in names:
        convert(os.path.join(tasks, name), os.path.join(out, name))


main(*sys.argv[1:])
