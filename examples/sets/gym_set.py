"""The gym set: games and puzzles of GEM, some from Reasoning Gym, and problems of AIME in SkyRL-Gym's environment. Each has the turns of a
player that gets the highest reward; it is played here once, in the environment itself."""

import itertools
import re
import sys

import gem
import gem.envs
import skyrl_gym
from wheel import open_wheel, read_rows, write_tasks

AIME = "resources_servers/ns_tools/data/compmath_test.jsonl"
PUZZLES = ("prime_factorization", "base_conversion", "caesar_cipher")


def bisect(env):
    """Guess The Number, from its hints."""
    low, high, seen = env.min_number, env.max_number, ""
    while True:
        guess = (low + high) // 2
        seen = yield f"I guess \\boxed{{{guess}}}."
        low, high = (low, guess - 1) if "is lower than" in seen else (guess + 1, high)


def eliminate(env):
    """Mastermind: the first code that all marks so far allow."""
    codes = list(itertools.permutations(range(1, env.num_numbers + 1), env.code_length))
    while True:
        guess = codes[0]
        seen = yield f"\\boxed{{{' '.join(map(str, guess))}}}"
        black, white = map(int, re.search(r"(\d+) black peg\(s\) and (\d+) white", seen).groups())
        codes = [code for code in codes if code != guess and marks(code, guess) == (black, white)]


def marks(code, guess):
    black = sum(a == b for a, b in zip(code, guess))
    return black, len(set(code) & set(guess)) - black


def hanoi(env):
    def move(count, source, target, spare):
        if count > 0:
            yield from move(count - 1, source, spare, target)
            yield f"\\boxed{{{source} {target}}}"
            yield from move(count - 1, spare, target, source)

    yield from move(env.num_disks, "A", "C", "B")


def sudoku(env):
    """From the grid that the environment made."""
    for row, column in itertools.product(range(env.scale), repeat=2):
        if env.board[row][column] == 0:
            yield f"\\boxed{{{row + 1} {column + 1} {env.full_grid[row][column]}}}"


def puzzle(env):
    yield f"\\boxed{{{env.data['answer']}}}"


def play(env, player):
    """The turns, if they end with the highest reward."""
    turns, total, seen = [], 0.0, None
    moves = player(env)
    while True:
        turns.append(moves.send(seen) if turns else next(moves))
        seen, reward, done, *_ = env.step(turns[-1])
        total += float(reward)
        if done:
            return turns if abs(total - 1) < 1e-9 else None


def gem_tasks():
    games = {"GuessTheNumber": bisect, "Mastermind": eliminate, "TowerofHanoi": hanoi, "Sudoku": sudoku}
    named = [(f"game:{name}-v0-{level}", player, 1) for name, player in games.items() for level in ("easy", "hard")]
    for name, player, seed in named + [(f"rg:{name}", puzzle, 1) for name in PUZZLES]:
        env = gem.make(name)
        env.reset(seed=seed)
        turns = play(env, player)
        if turns is None:
            raise SystemExit(f"the player of {name}, seed {seed}, does not get the highest reward")
        task = {"kind": "gem", "env": name, "seed": seed, "reward_range": [-1, 1], "solution": turns}
        yield f"{name.replace(':', '-')}-{seed}", "gym", task


def skyrl_tasks(rows):
    for row in rows:
        extras = {"reward_model": {"ground_truth": row["expected_answer"]}}
        answer = f"Answer: {row['expected_answer']}"
        if skyrl_gym.make("aime", env_config={}, extras=extras).step(answer)["reward"] != 1:
            raise SystemExit(f"{row['id']}: SkyRL-Gym does not accept the expected answer")
        content = f"{row['question']}\n\nEnd with a line that says Answer: and the number."
        prompt = [{"role": "user", "content": content}]
        task = {"kind": "skyrl", "env": "aime", "args": {"extras": extras}, "prompt": prompt, "reward_range": [-1, 1]}
        yield f"skyrl-{row['id']}", "gym", {**task, "solution": [answer]}


def main(wheels, out):
    rows = [row for row in read_rows(open_wheel(wheels, "nemo_gym"), AIME) if row["subset_for_metrics"] == "aime25"]
    write_tasks(out, [*gem_tasks(), *skyrl_tasks(rows[:3])])


main(*sys.argv[1:])
