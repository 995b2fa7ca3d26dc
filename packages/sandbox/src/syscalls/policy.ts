// The system calls that no program in a sandbox may use, for both drivers: what agents never need, and what has given or could give them
// rights over the machine or their neighbours. The list is in docs/sandbox.md.

import type { CallName } from './numbers.ts';

/** A condition on one argument. The kernel reads 32 bits of each of these arguments, except `not-null`, which is about a pointer. */
export type ArgumentTest =
  | { readonly kind: 'has-bit'; readonly argument: number; readonly bit: number }
  | { readonly kind: 'one-of'; readonly argument: number; readonly values: readonly number[] }
  | { readonly kind: 'not-zero'; readonly argument: number }
  | { readonly kind: 'not-null'; readonly argument: number };

export interface CallRule {
  readonly name: CallName;
  /** `EPERM`: not permitted. `ENOSYS`: this kernel has no such call, so that programs use the older one. `none`: it succeeds and does nothing. */
  readonly error: 'EPERM' | 'ENOSYS' | 'none';
  /** All must hold. Without any, the call is always refused. */
  readonly when: readonly ArgumentTest[];
}

export interface PolicyOptions {
  /** Allows user namespaces. Nothing can be mounted in them. */
  readonly namespaces: boolean;
  /** Whether a control group limits memory. Otherwise, memory that belongs to no process is refused. */
  readonly isMemoryBounded: boolean;
}

/** Refused whatever their arguments are. */
const refusedCalls: readonly CallName[] = [
  // Mounts: an agent could reach the control groups that limit it.
  ...(['mount', 'umount2', 'pivot_root', 'fsopen', 'fsconfig', 'fsmount', 'fspick', 'move_mount', 'open_tree'] as const),
  ...(['open_tree_attr', 'mount_setattr', 'setns'] as const),
  // io_uring: the calls that it makes are not filtered.
  ...(['io_uring_setup', 'io_uring_enter', 'io_uring_register'] as const),
  // Keys outlive a sandbox, and all sandboxes of a worker share its session keyring.
  ...(['add_key', 'request_key', 'keyctl'] as const),
  // Code in the kernel.
  ...(['bpf', 'init_module', 'finit_module', 'delete_module', 'kexec_load', 'kexec_file_load'] as const),
  // What the kernel and other processes do.
  ...(['perf_event_open', 'syslog', 'fanotify_init'] as const),
  // Files outside of the sandbox's mounts.
  'open_by_handle_at',
  // Tools of kernel exploits: they stop the kernel in the middle of a copy, hide memory from it, or change the processor's tables.
  ...(['userfaultfd', 'memfd_secret', 'modify_ldt', 'iopl', 'ioperm'] as const),
  // Settings of the whole machine.
  ...(['reboot', 'swapon', 'swapoff', 'acct', 'quotactl', 'quotactl_fd', 'settimeofday', 'clock_settime'] as const),
  ...(['sethostname', 'setdomainname', 'vhangup'] as const),
];

/** Memory of no process: no limit of processes counts it. */
const unownedMemory: readonly CallName[] = ['memfd_create', 'shmget', 'msgget'];

/**
 * Write all dirty pages of the machine to its disks. An agent could delay everything that waits for them, and a program that waits in them forever
 * uses no time of its own.
 */
const flushingCalls: readonly CallName[] = ['sync', 'syncfs'];

const newUser = 0x10000000;
/** Unspecified, Unix, IPv4, IPv6 and netlink. The others, such as AF_VSOCK and AF_ALG, reach the host or rarely used parts of the kernel. */
const socketFamilies = [0, 1, 2, 10, 16];
const otherFamilies = Array.from({ length: 64 }, (_, family) => family).filter((family) => !socketFamilies.includes(family));
/** TIOCSTI and TIOCLINUX type into a terminal. */
const typing = [0x5412, 0x541c];

const schedulingCalls: readonly CallName[] = ['sched_setaffinity', 'sched_setattr', 'sched_setparam', 'sched_setscheduler'];
/** What the first argument of these calls says that the second one names. */
const priorityCalls = [
  { name: 'setpriority', values: { process: 0, group: 1, user: 2 } },
  { name: 'ioprio_set', values: { process: 1, group: 2, user: 3 } },
] as const;

export function listRules({ namespaces, isMemoryBounded }: PolicyOptions): CallRule[] {
  const refuse = (name: CallName, ...when: ArgumentTest[]): CallRule => ({ name, error: 'EPERM', when });
  const withNewUser = { kind: 'has-bit', argument: 0, bit: newUser } as const;
  const ofExecutor = (argument: number) => ({ kind: 'one-of', argument, values: [1] }) as const;
  const ofOtherFamily = { kind: 'one-of', argument: 0, values: otherFamilies } as const;
  return [
    // A filter cannot read the flags of clone3. Programs then use clone.
    { name: 'clone3', error: 'ENOSYS', when: [] },
    ...(namespaces ? [] : [refuse('clone', withNewUser), refuse('unshare', withNewUser)]),
    ...refusedCalls.map((name) => refuse(name)),
    ...flushingCalls.map((name): CallRule => ({ name, error: 'none', when: [] })),
    ...(isMemoryBounded ? [] : unownedMemory.map((name) => refuse(name))),
    refuse('socket', ofOtherFamily),
    refuse('socketpair', ofOtherFamily),
    refuse('ioctl', { kind: 'one-of', argument: 1, values: typing }),
    // Priority and processors of the executor, which is process 1 and has one thread, or of everything that has its user.
    ...schedulingCalls.map((name) => refuse(name, ofExecutor(0))),
    ...priorityCalls.flatMap(({ name, values: { process, group, user } }) => [
      refuse(name, { kind: 'one-of', argument: 0, values: [process, group] }, ofExecutor(1)),
      refuse(name, { kind: 'one-of', argument: 0, values: [user] }),
    ]),
    // Setting the limits of another process, such as the executor. Process 0 is the caller itself.
    refuse('prlimit64', { kind: 'not-zero', argument: 0 }, { kind: 'not-null', argument: 2 }),
  ];
}
