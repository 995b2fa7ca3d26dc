// The tasks of the demo, and what the scripted policy says to each: it solves them, except with the last two siblings of a group.

import type { SubmissionInput } from '@millrace/protocol';
import { renderCall, type TurnScript } from '../local/scripted-backend.ts';

interface DemoTask {
  readonly submission: Omit<SubmissionInput, 'id'>;
  /** What a policy that solves the task says, turn by turn, and what one says that does not. */
  readonly turns: readonly string[];
  readonly wrong: readonly string[];
  /** Only in the prompt of this task. */
  readonly match: string;
}

const bash = (command: string) => renderCall('bash', { command });
const finish = (answer = '') => renderCall('finish', { answer });

const products = [
  [17, 23],
  [48, 52],
  [125, 8],
  [99, 101],
  [64, 64],
  [37, 41],
] as const;

const math = products.map(([a, b]): DemoTask => {
  const question = `What is ${a} × ${b}?`;
  return {
    submission: { scenario: 'math', task: { question, answer: String(a * b) } },
    match: question,
    turns: [`${a} × ${b} is ${a} times ${b}, so the answer is \\boxed{${a * b}}.`],
    wrong: [`I would say \\boxed{${a * b + 10}}.`],
  };
});

const shell: DemoTask[] = [
  {
    submission: {
      scenario: 'shell',
      task: {
        instruction: 'One of the files in /workspace/logs holds the word ERROR. Write its name into /workspace/answer.txt.',
        setup:
          'mkdir logs && for i in $(seq 20); do echo "line $i ok" > logs/app-$i.log; done && echo "ERROR: disk full" >> logs/app-13.log',
        check: 'grep -q "app-13.log" answer.txt',
      },
    },
    match: 'holds the word ERROR',
    turns: [bash('ls logs | head'), bash('cd logs && grep -l ERROR *.log > ../answer.txt; cat ../answer.txt'), finish()],
    wrong: [bash('echo app-1.log > answer.txt'), finish()],
  },
  {
    submission: {
      scenario: 'shell',
      task: {
        instruction: 'Make /workspace/primes.txt with all primes below 100, one on each line.',
        check: '[ "$(wc -l < primes.txt)" -eq 25 ] && head -1 primes.txt | grep -qx 2 && tail -1 primes.txt | grep -qx 97',
      },
    },
    match: 'all primes below 100',
    turns: [
      bash(
        'for n in $(seq 2 99); do p=1; for ((d=2; d*d<=n; d++)); do ((n % d)) || { p=0; break; }; done; ((p)) && echo $n; done > primes.txt; wc -l primes.txt',
      ),
      finish(),
    ],
    wrong: [bash('seq 2 99 > primes.txt'), finish()],
  },
  {
    submission: {
      scenario: 'shell',
      task: {
        instruction: 'The script /workspace/greet.sh fails. Fix it so that it prints exactly: hello world',
        setup: "printf '#!/bin/bash\\nif true; then\\n  echo hello wrld\\n' > greet.sh && chmod +x greet.sh",
        check: '[ "$(judged ./greet.sh)" = "hello world" ]',
      },
    },
    match: 'greet.sh fails',
    turns: [
      bash('./greet.sh'),
      bash('cat greet.sh'),
      bash("sed -i 's/wrld/world/' greet.sh && echo fi >> greet.sh && ./greet.sh"),
      finish(),
    ],
    wrong: [bash("sed -i 's/wrld/world/' greet.sh"), finish()],
  },
  {
    submission: {
      scenario: 'shell',
      task: {
        instruction: 'How many distinct words does /workspace/poem.txt have? Give the number as the answer.',
        setup: "printf 'the mill turns the wheel\\nthe wheel turns the mill\\n' > poem.txt",
        check: '[ "$ANSWER" = 4 ]',
      },
    },
    match: 'distinct words',
    turns: [bash("tr ' ' '\\n' < poem.txt | sort -u | wc -l"), finish('4')],
    wrong: [finish('10')],
  },
];

const tasks: readonly DemoTask[] = [...math, ...shell];

export const siblings = 6;

/** Six siblings of each task, as a trainer asks for them. */
export function makeSubmissions(): SubmissionInput[] {
  return tasks.flatMap(({ submission }, index) =>
    Array.from({ length: siblings }, (_, sibling) => ({ ...submission, id: `demo-${index}-${sibling}`, group: `demo-${index}` })),
  );
}

/** The last two siblings of every group fail. */
export const demoScript: TurnScript = ({ rolloutId, opening, turn }) => {
  const task = tasks.find(({ match }) => opening.includes(match));
  if (!task) return 'No script matches this task.';
  const turns = /-[45]$/.test(rolloutId) ? task.wrong : task.turns;
  return turns[Math.min(turn, turns.length - 1)] ?? '';
};
