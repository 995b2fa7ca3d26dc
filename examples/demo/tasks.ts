// The demo's tasks, and the script by which the fake backend plays a policy that solves most of them.

import type { SubmissionInput } from '@millrace/protocol';

interface DemoTask {
  readonly submission: Omit<SubmissionInput, 'id'>;
  /** What the policy says, turn by turn; `wrong` is what it says on a bad day. */
  readonly turns: readonly string[];
  readonly wrong: readonly string[];
  /** Found in the prompt of this task and of no other. */
  readonly match: string;
}

const call = (name: string, args: Record<string, string>) => `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
const bash = (command: string) => call('bash', { command });
const finish = (answer = '') => call('finish', { answer });

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
        instruction: 'The script /workspace/greet.sh fails. Mend it so that it prints exactly: hello world',
        setup: "printf '#!/bin/bash\\nif true; then\\n  echo hello wrld\\n' > greet.sh && chmod +x greet.sh",
        check: '[ "$(./greet.sh)" = "hello world" ]',
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

export const tasks: readonly DemoTask[] = [...math, ...shell];

/** Six siblings of each task, as a trainer would ask for them. */
export function makeSubmissions(): SubmissionInput[] {
  const siblings = [0, 1, 2, 3, 4, 5];
  return tasks.flatMap(({ submission }, index) =>
    siblings.map((sibling) => ({ ...submission, id: `demo-${index}-${sibling}`, group: `demo-${index}` })),
  );
}
