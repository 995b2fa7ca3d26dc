// Every warning and error that the service logs: what it means, and what to do about it. The hint is part of each JSON line, and
// docs/operations.md has the table. A test holds it to the source.

import type { Log } from '@millrace/base/log';
import { type LogEvent, machineLogEvents, storeFails } from './machine-log-events.ts';

export const logEvents = {
  'gateway-request-failed': {
    means: 'A request of a gateway failed with an error that no rule expects.',
    hint: 'Read `error`, and report it. The client got a 502.',
  },
  'agents-are-root': {
    means: 'Agents run as root inside their sandboxes.',
    hint: 'Start the service as a normal user, or install what the message names. See docs/security.md.',
  },
  ...machineLogEvents,
  'backend-health-failed': {
    means: 'The health of a backend could not be written.',
    hint: storeFails,
  },
  'backend-join-broken': {
    means: 'A backend joined but did not answer as expected.',
    hint: 'Read `error`. It gets rollouts as soon as a probe succeeds. See docs/backends.md.',
  },
  'backend-logprobs-doubtful': {
    means: 'The logprobs of a backend may not be those of the sampling distribution.',
    hint: 'Join it again with `logprobs_mode`, or start the server with the flag that docs/backends.md names.',
  },
  'backend-keep-failed': {
    means: 'An LLM server of a Slurm deployment could not ask the service whether it is in the pool.',
    hint: 'It is repeated every few seconds. Check whether the head runs: millrace slurm status.',
  },
  'backend-leave-failed': {
    means: 'An LLM server of a Slurm deployment ended without leaving the pool.',
    hint: 'Its health check takes it out. To remove it: millrace backend rm.',
  },
  'batch-pause': {
    means: 'Several groups of a batch failed in a row and no task is to blame. It tries one group at a time.',
    hint: 'Fix what `reason` names. It continues by itself, or at once with `millrace batch resume`.',
  },
  'batch-save-failed': { means: 'Batches could not be read or written.', hint: storeFails },
  'batch-stuck': {
    means: 'One batch could not be continued; the others are not affected.',
    hint: 'Read `error`: a task file may be missing, or a scenario may throw. It is tried again with the next event.',
  },
  'dashboard-index-failed': {
    means: 'The list of rollouts that the dashboard shows could not be read from the store. Rollouts go on.',
    hint: 'Read `error`. The list is read again when somebody opens the dashboard.',
  },
  'checkpoint-share-failed': { means: 'Only the machine that took a checkpoint has it.', hint: 'Check `pipeline.checkpointsFolder`.' },
  'clock-jump': {
    means: 'The date of this machine stepped. Leases start again, and retention waits for as long as anything is kept.',
    hint: 'Let a time service slew the clock instead of stepping it. No action is needed for rollouts.',
  },
  'disk-unbounded': {
    means: 'The disk of sandboxes is not limited, and layers are off.',
    hint: 'Allow the process to mount file systems, as docs/sandbox.md describes.',
  },
  'drain-count-failed': {
    means: 'The number of running rollouts could not be read while the service stops.',
    hint: 'None: the service stops in time anyway.',
  },
  'evaluation-stuck': {
    means: 'One evaluation could not be continued; the others are not affected.',
    hint: 'Read `error`: a scenario may throw, or a rollout with the same id may exist. It is tried again with the next event.',
  },
  'event-listener-failed': {
    means: 'A reader of the event log in this process failed.',
    hint: 'A bug: report it with `error`. The next event is read.',
  },
  'event-tail-read-failed': { means: 'The event log could not be read.', hint: storeFails },
  'gate-report-failed': {
    means: 'A worker could not report that it has seen a pause of the policy; the pause takes longer.',
    hint: storeFails,
  },
  'housekeeping-failed': { means: 'Leases could not be expired or taken, or old rows could not be deleted.', hint: storeFails },
  'loss-control-failed': {
    means:
      'For a rollout that took two workers in evaluate, an agent that did nothing could not be judged. If it takes another, it has no verdict.',
    hint: 'Read `error`: usually the machine is too busy.',
  },
  'lowest-reward-failed': {
    means: 'The `lowestReward` of a scenario threw; the rollout fails without a reward.',
    hint: 'Fix the scenario: `error` has the stack.',
  },
  'memory-watch-failed': {
    means: 'The processes of the sandboxes could not be read, so no memory limit is enforced for now.',
    hint: 'Check the limit of open files of the worker. Where control groups work, they limit memory instead.',
  },
  'model-warning': {
    means: 'Something about the model that operators should know.',
    hint: 'Read `warning` and decide whether it matters for your training.',
  },
  'policy-read-failed': { means: 'A worker could not read the state of the policy.', hint: storeFails },
  'prorl-job-save-failed': {
    means: "The calls of ProRL Agent's clients that this server answers could not be renewed or removed.",
    hint: storeFails,
  },
  'rejudge-failed': {
    means: 'The second judgement of a rollout failed. Its first reward counts.',
    hint: 'Check whether the verifier can run twice on the same result.',
  },
  'reply-cut-off': {
    means: 'A reply ended before it was complete; the client sees a broken connection and repeats it.',
    hint: 'Read `error`: usually the store failed, or rows were deleted while they were read.',
  },
  'request-failed': { means: 'A request failed in a way that no one expected.', hint: 'A bug: report it with `error`.' },
  'request-store-failed': {
    means: 'A request failed because the store did. Nothing was acknowledged.',
    hint: 'Check the disk of the store: free space, errors, and other processes that lock the file. The client can repeat the request.',
  },
  'rollout-end-save-failed': {
    means: 'A worker that stops could not save the end of a rollout. It runs again elsewhere.',
    hint: 'Check the disk of the store: free space, errors, and other processes that lock the file.',
  },
  'rollout-end-unsavable': {
    means: 'The end of a rollout can never be stored, so it ended as failed without its trajectory.',
    hint: 'A bug of the scenario or of Millrace: `error` has the stack.',
  },
  'rollout-failure': {
    means: 'An attempt at a rollout failed.',
    hint: 'Read `code` and `blame`. Many with the same code: see docs/troubleshooting.md.',
  },
  'rollout-fenced': {
    means: 'A worker finished a rollout that had been given to another one; its result was discarded.',
    hint: 'None if it is rare. Otherwise workers stop for longer than `pipeline.leaseMs`: look for `store-stall`, swapping, or too many rollouts per worker.',
  },
  'rollout-save-failed': { means: 'A step of a rollout could not be written. The worker holds it and tries again.', hint: storeFails },
  'sandbox-close-failed': {
    means: 'A sandbox could not be removed.',
    hint: 'None: the next sweep removes it.',
  },
  'sandbox-die': {
    means: 'A sandbox ended while it was in use. Its rollout is blamed on the agent, or retried.',
    hint: 'Many at once: check memory and process limits of the host (`dmesg`, docs/sandbox.md).',
  },
  'sandbox-warm-dead': {
    means: 'A sandbox that was ready in advance had died; another one was started.',
    hint: 'Many: check memory of the host.',
  },
  'sandbox-warm-failed': {
    means: 'A sandbox could not be started in advance.',
    hint: 'Run `millrace doctor`; it starts one and says what is missing.',
  },
  'postgres-orphan': {
    means: 'A PostgreSQL that an earlier run left behind was still running; it is stopped, and started again.',
    hint: 'Nothing to do: what was committed is there. Look for why the earlier run ended without stopping it.',
  },
  'rollout-continue-failed': { means: 'Saved turns of a rollout cannot be used: it begins again.', hint: 'Read `error`.' },
  'sandboxes-swept': {
    means: 'Sandboxes of killed workers were removed.',
    hint: 'Find out why a worker was killed: look for `worker-exit`.',
  },
  'store-full': {
    means:
      'The store has reached its budget, or its disk is nearly full. Submissions get 507, queued rollouts wait, and running ones finish.',
    hint: 'Free space on the disk, run `millrace store compact`, shorten `retention`, or raise `store.budgetMib`. It continues by itself. See docs/store.md.',
  },
  'sequencer-failed': { means: 'The event log of PostgreSQL could not be numbered.', hint: 'Read `error`; it is tried again.' },
  'store-check-failed': {
    means: 'The store cannot be written, so /readyz answers 503.',
    hint: 'Check the disk of the store: free space, errors, and other processes that lock the file. No restart is needed.',
  },
  'store-hint-listener-failed': { means: 'A reader of the store in this process failed.', hint: 'A bug: report it with `error`.' },
  'store-on-network-file-system': {
    means: 'The store is on a network file system, where SQLite can lose data.',
    hint: 'Set `data` to a folder on a local disk.',
  },
  'store-stall': {
    means: 'A write took longer than half a lease. Leases start again, so no live worker is lost.',
    hint: 'Look for a slow disk, a process that locks the store, or a machine that swaps. A longer `pipeline.leaseMs` tolerates more.',
  },
  'store-commit-reply-lost': {
    means: 'The connection to PostgreSQL broke during a commit. `status` is what became of it; a commit that failed is repeated.',
    hint: 'None, unless `status` is `unknown`: then the database was down for a minute.',
  },
  'store-connection-lost': {
    means: 'PostgreSQL cannot be reached, or ended the connection. It is tried again.',
    hint: 'Check that PostgreSQL runs and accepts connections: `error` has its reply. See docs/postgres.md.',
  },
  'store-thread-died': {
    means: 'A thread of the store died, and this process exits. Nothing acknowledged is lost.',
    hint: 'Start the service again, if nothing does it for you; workers are started again by their server.',
  },
  'scenario-call-stuck': {
    means:
      'A function of a scenario in Python did not end when its time was up. Its thread goes on; after some of them the process is replaced.',
    hint: 'Give what the function waits for a timeout of its own. See docs/scenarios.md.',
  },
  'scenario-close-failed': {
    means: 'A scenario could not close a rollout. The result of the rollout is not affected.',
    hint: 'Fix the scenario: `error` has the stack.',
  },
  'scenario-process-died': {
    means: 'The process of a scenario in Python ended or did not answer. It is started again; rollouts that it held are retried.',
    hint: 'Read `why`: the scenario may have crashed, or the kernel may have ended it for memory (`dmesg`).',
  },
  'store-watch-failed': {
    means: 'Changes of the store cannot be watched. They are read once a second instead.',
    hint: 'Raise `fs.inotify.max_user_instances` and `fs.inotify.max_user_watches`.',
  },
  'system-calls-unfiltered': {
    means: 'The system calls of agents are not filtered.',
    hint: 'See docs/security.md for what this means, and for what to install.',
  },
  'tool-action-failed': {
    means: 'The tool server could not run an action: the sandbox did not open, or died. The trajectory ends without an observation.',
    hint: 'Read `error`. Check sandboxes with millrace doctor.',
  },
  'verdict-flaky': {
    means: 'A verifier gave another reward when it judged the same result again.',
    hint: 'Make the verifier deterministic: seeds, time, network, order of files.',
  },
  'webhook-failed': {
    means: 'A webhook did not answer with 2xx. The group is sent again after `retry_ms`.',
    hint: 'Check the receiver at the address of the batch, and `http.webhookHosts`.',
  },
  'webhook-lost': {
    means: 'The hold of this server on a delivery ended before it was made, and another server took it over.',
    hint: 'This server was stopped, or cut off from the store, for more than ten seconds. The receiver may get the group twice.',
  },
  'webhook-read-failed': { means: 'The groups to send could not be read.', hint: storeFails },
  'webhook-save-failed': { means: 'The outcome of a webhook could not be written.', hint: storeFails },
  'worker-cannot-start': {
    means: 'A worker cannot start, and is not tried again.',
    hint: 'Fix what `reason` names and restart the service. `millrace doctor` checks the machine.',
  },
  'worker-crash': { means: 'A worker ended because of an error.', hint: 'A bug: report it with `stack`. It is started again.' },
  'worker-exit': {
    means: 'A worker process ended and is started again. Its rollouts go back to the queue.',
    hint: 'With SIGKILL, check whether the kernel ended it for memory (`dmesg`); otherwise read `reason`.',
  },
  'worker-fenced': {
    means: 'A worker lost its lease. It dropped what it held and works on under a new id.',
    hint: 'It was stopped for longer than `pipeline.leaseMs`: look for `store-stall`, swapping, or a suspended machine.',
  },
  'worker-frozen': {
    means: 'The event loop of a worker was blocked for several leases. The worker is killed and started again.',
    hint: 'Usually a scenario in TypeScript: a pattern or a loop that does not end on some text. See docs/verifiers.md#a-verdict-that-takes-its-worker-along.',
  },
  'worker-loop-failed': { means: 'A worker could not claim, renew or report. It tries again after a second.', hint: storeFails },
  'worker-remove-failed': {
    means: 'The rollouts of a dead worker could not be taken back at once. Its lease does it later.',
    hint: 'Check the disk of the store: free space, errors, and other processes that lock the file.',
  },
  'worker-start-failed': {
    means: 'A worker process did not get its configuration.',
    hint: 'Read `error`: usually the machine has no memory or no processes left.',
  },
} as const satisfies Readonly<Record<string, LogEvent>>;

function hintOf(event: string): string | undefined {
  return (logEvents as Readonly<Record<string, LogEvent>>)[event]?.hint;
}

/** Failures of the store that have their own hint. */
const storeEvents: ReadonlySet<string> = new Set(['request-store-failed', 'store-check-failed', 'store-connection-lost']);
/** Failures that are repeated until they stop, with the field that names what fails. */
const repeatedEvents: Readonly<Record<string, string>> = {
  'backend-keep-failed': 'url',
  'batch-stuck': 'batch',
  'evaluation-stuck': 'evaluation',
  'sandbox-warm-failed': 'message',
  'store-watch-failed': 'path',
  'webhook-failed': 'batch',
};

/** What a failure is part of: the store, which fails for all that use it, or one thing that is tried again; absent for any other event. */
export function outageOf(event: string, fields: Record<string, unknown>): string | undefined {
  if (storeEvents.has(event) || hintOf(event) === storeFails) return 'store';
  const field = repeatedEvents[event];
  return field === undefined ? undefined : [event, fields[field]].filter((part) => part !== undefined).join(' ');
}

/** Adds to each warning and error what to do: always, or only the first time that an event is logged. */
export function withHints(log: Log, { when }: { readonly when: 'always' | 'first-time' }): Log {
  const hinted = new Set<string>();
  const add = (event: string, fields: Record<string, unknown>) => {
    const hint = when === 'first-time' && hinted.has(event) ? undefined : hintOf(event);
    hinted.add(event);
    return hint === undefined ? fields : { ...fields, hint };
  };
  return {
    info: (event, fields) => log.info(event, fields),
    warn: (event, fields = {}) => log.warn(event, add(event, fields)),
    error: (event, fields = {}) => log.error(event, add(event, fields)),
  };
}

/** A row for each event, for docs/operations.md. */
export function renderLogEvents(): string {
  const rows = Object.entries(logEvents).map(([event, { means, hint }]) => `| \`${event}\` | ${means} | ${hint} |`);
  return ['| event | means | what to do |', '|---|---|---|', ...rows.sort()].join('\n');
}
