// The numbers of the system calls that sandboxes refuse, on x86_64 and on arm64.

interface CallNumbers {
  readonly x64: number;
  /** Absent if arm64 has no such call. */
  readonly arm64?: number;
}

/** Since Linux 5.1, new calls have the same number on both. */
const same = (number: number): CallNumbers => ({ x64: number, arm64: number });

export const callNumbers = {
  acct: { x64: 163, arm64: 89 },
  add_key: { x64: 248, arm64: 217 },
  bpf: { x64: 321, arm64: 280 },
  clock_settime: { x64: 227, arm64: 112 },
  clone: { x64: 56, arm64: 220 },
  clone3: same(435),
  delete_module: { x64: 176, arm64: 106 },
  fanotify_init: { x64: 300, arm64: 262 },
  finit_module: { x64: 313, arm64: 273 },
  fsconfig: same(431),
  fsmount: same(432),
  fsopen: same(430),
  fspick: same(433),
  init_module: { x64: 175, arm64: 105 },
  io_uring_enter: same(426),
  io_uring_register: same(427),
  io_uring_setup: same(425),
  ioctl: { x64: 16, arm64: 29 },
  ioperm: { x64: 173 },
  iopl: { x64: 172 },
  ioprio_set: { x64: 251, arm64: 30 },
  kexec_file_load: { x64: 320, arm64: 294 },
  kexec_load: { x64: 246, arm64: 104 },
  keyctl: { x64: 250, arm64: 219 },
  memfd_create: { x64: 319, arm64: 279 },
  memfd_secret: same(447),
  modify_ldt: { x64: 154 },
  mount: { x64: 165, arm64: 40 },
  mount_setattr: same(442),
  move_mount: same(429),
  msgget: { x64: 68, arm64: 186 },
  open_by_handle_at: { x64: 304, arm64: 265 },
  open_tree: same(428),
  open_tree_attr: same(467),
  perf_event_open: { x64: 298, arm64: 241 },
  pivot_root: { x64: 155, arm64: 41 },
  prlimit64: { x64: 302, arm64: 261 },
  quotactl: { x64: 179, arm64: 60 },
  quotactl_fd: same(443),
  reboot: { x64: 169, arm64: 142 },
  request_key: { x64: 249, arm64: 218 },
  sched_setaffinity: { x64: 203, arm64: 122 },
  sched_setattr: { x64: 314, arm64: 274 },
  sched_setparam: { x64: 142, arm64: 118 },
  sched_setscheduler: { x64: 144, arm64: 119 },
  setdomainname: { x64: 171, arm64: 162 },
  sethostname: { x64: 170, arm64: 161 },
  setns: { x64: 308, arm64: 268 },
  setpriority: { x64: 141, arm64: 140 },
  settimeofday: { x64: 164, arm64: 170 },
  shmget: { x64: 29, arm64: 194 },
  socket: { x64: 41, arm64: 198 },
  socketpair: { x64: 53, arm64: 199 },
  swapoff: { x64: 168, arm64: 225 },
  swapon: { x64: 167, arm64: 224 },
  sync: { x64: 162, arm64: 81 },
  syncfs: { x64: 306, arm64: 267 },
  syslog: { x64: 103, arm64: 116 },
  umount2: { x64: 166, arm64: 39 },
  unshare: { x64: 272, arm64: 97 },
  userfaultfd: { x64: 323, arm64: 282 },
  vhangup: { x64: 153, arm64: 58 },
} as const satisfies Readonly<Record<string, CallNumbers>>;

export type CallName = keyof typeof callNumbers;

/** The newest call that was reviewed, of Linux 6.17 (`file_setattr`). */
export const newestCall = 469;

/** The number of a call on this machine; undefined if there is none. */
export function findNumber(name: CallName, arch: FilterArch): number | undefined {
  const numbers: CallNumbers = callNumbers[name];
  return numbers[arch];
}

/** The architectures that can be filtered, under Node's names. */
export type FilterArch = 'x64' | 'arm64';
