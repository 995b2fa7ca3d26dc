import { writeFileSync } from 'node:fs';
import { WorkerBed } from './pipeline/worker-bed.ts';
import { renderCall } from '@millrace/testkit';
writeFileSync('/tmp/w/e/deep.py', `
from dataclasses import dataclass
from millrace.scenario import Opening, tool
name = "probe"
@dataclass
class Task:
    do: str = ""
@tool
def take(rollout, data: dict) -> str:
    """Takes."""
    return "taken"
def init(rollout): return Opening("go", tools=[take])
def evaluate(rollout): return 0.0
`);
const log = { info: (e: string, f: unknown) => console.log(e, JSON.stringify(f)?.slice(0, 600)), warn: (e: string, f: unknown) => console.log(e, JSON.stringify(f)?.slice(0, 600)), error: (e: string, f: unknown) => console.log(e, JSON.stringify(f)?.slice(0, 600)) };
const deep = Number(process.argv[2] ?? 5000);
await using bed = await WorkerBed.open({ scenarioFiles: ['/tmp/w/e/deep.py'], log: log as never, python: { hungMs: 3000 }, policy: () => ({ text: renderCall('take', { data: { deep: JSON.parse('['.repeat(deep) + ']'.repeat(deep)) } }) }) });
await bed.startWorker();
const id = await bed.submit({ id: 'x', scenario: 'probe', task: {}, limits: { max_retries: 0, max_turns: 3 } });
const r = await bed.ended(id);
console.log(r.state, r.result?.reward, r.failure, r.failures.map((f) => f.message.slice(0, 200)));
