// The batch scripts of a deployment, as text. `millrace slurm render` prints them, and `up` submits them. Everything here is pure.

import type { SlurmConfig, SlurmRole } from '@millrace/server';
import type { Deployment } from './deployment.ts';

interface ScriptOptions {
  readonly slurm: SlurmConfig;
  readonly deployment: Deployment;
  readonly role: SlurmRole;
  /** How the node starts Millrace. */
  readonly command: readonly string[];
  /** The node that the head must run on. */
  readonly node?: string;
}

/** Times that a job whose program crashed is put back into Slurm's queue. */
const mostRestarts = 3;

export function renderScript(options: ScriptOptions): string {
  const { slurm, deployment, role, command } = options;
  const program = [...command, 'slurm', 'node', role, '--folder', deployment.folder].map(quote).join(' ');
  return [
    '#!/bin/bash',
    ...toDirectives(options).map((line) => `#SBATCH ${line}`),
    '',
    `# Written by \`millrace slurm\` for the deployment ${deployment.name}.`,
    'umask 077',
    ...slurm.setup,
    '# Slurm signals this shell only. Millrace finishes what runs or hands it back, and then ends.',
    'pid= asked=',
    `trap 'asked=1; [ -z "$pid" ] || kill -TERM $pid 2>/dev/null' TERM`,
    `${program} &`,
    'pid=$!',
    '# A signal that came before the process id was known.',
    '[ -z "$asked" ] || kill -TERM $pid 2>/dev/null',
    'wait $pid; code=$?',
    'while kill -0 $pid 2>/dev/null; do wait $pid; code=$?; done',
    '# One that is asked to end while it starts dies of the signal, which is not a crash.',
    '[ -z "$asked" ] || exit $code',
    '# 0: it has ended by itself. 2 and 78: it would fail again.',
    'case $code in 0|2|78) exit $code ;; esac',
    `if [ "\${SLURM_RESTART_COUNT:-0}" -lt ${mostRestarts} ]; then`,
    '  echo "millrace: ended with exit code $code; this job goes back into the queue"',
    `  job=\${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}\${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}`,
    '  scontrol requeue "$job" && sleep 60',
    'fi',
    'exit $code',
    '',
  ].join('\n');
}

function toDirectives({ slurm, deployment, role, node }: ScriptOptions): string[] {
  const own = slurm[role];
  const field = <K extends 'partition' | 'account' | 'qos' | 'time' | 'cpus' | 'memory' | 'gpus' | 'constraint' | 'exclusive'>(name: K) =>
    own[name] ?? slurm[name];
  const flag = (name: string, value: string | number | undefined) => (value === undefined ? [] : [`--${name}=${value}`]);
  const log = role === 'head' ? '%j' : '%A_%a';
  return [
    `--job-name=${deployment.jobName(role)}`,
    `--output=${deployment.logFolder}/${role}-${log}.log`,
    '--open-mode=append',
    '--nodes=1',
    '--ntasks=1',
    ...flag('partition', field('partition')),
    ...flag('account', field('account')),
    ...flag('qos', field('qos')),
    ...flag('time', field('time')),
    ...flag('cpus-per-task', field('cpus')),
    ...flag('mem', field('memory')),
    ...flag('gpus-per-node', field('gpus')),
    ...flag('constraint', field('constraint')),
    ...(field('exclusive') === true ? ['--exclusive'] : []),
    ...flag('nodelist', role === 'head' ? node : undefined),
    // One head at a time: two would open the same store.
    ...(role === 'head' ? ['--dependency=singleton'] : []),
    '--requeue',
    `--signal=B:TERM@${slurm.graceSeconds}`,
    ...(slurm.options ?? []),
    ...(own.options ?? []),
  ];
}

function quote(text: string): string {
  return /^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
