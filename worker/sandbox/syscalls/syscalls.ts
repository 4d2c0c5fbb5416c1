/**
 * Numbers of the system calls that the filter names, for each architecture it knows.
 *
 * From the kernel's `arch/x86/entry/syscalls/syscall_64.tbl` and, for arm64,
 * `include/uapi/asm-generic/unistd.h`; undefined where an architecture does not have the call.
 */

/** An architecture with a filter, as `process.arch` names it. */
export type FilteredArch = "x64" | "arm64";

/** Numbers of one call, by architecture. */
export type SyscallNumbers = Readonly<Record<FilteredArch, number | undefined>>;

/** Calls that are newer than the common table have one number everywhere. */
const everywhere = (number: number): SyscallNumbers => ({ x64: number, arm64: number });
const call = (x64: number, arm64: number | undefined): SyscallNumbers => ({ x64, arm64 });

/** Calls whose arguments decide. */
export const inspectedCalls = {
  clone: call(56, 220),
  close_range: everywhere(436),
  fcntl: call(72, 25),
  getsockopt: call(55, 209),
  ioctl: call(16, 29),
  mmap: call(9, 222),
  personality: call(135, 92),
  prctl: call(157, 167),
  seccomp: call(317, 277),
  setsockopt: call(54, 208),
  socket: call(41, 198),
  socketpair: call(53, 199),
} as const;

/**
 * Calls that some kernels do not have, so that callers know what to do without them: they take
 * another way, or say what is missing.
 */
export const unknownCalls: Readonly<Record<string, SyscallNumbers>> = {
  // Its flags lie in memory that a filter cannot read. Callers take `clone`.
  clone3: everywhere(435),
  // Memory without a mapping, which neither RLIMIT_AS nor what processes hold counts: files that
  // are in no file system,
  memfd_create: call(319, 279),
  memfd_secret: everywhere(447),
  // and objects of System V, see sysvipc(7). Without one of them there is nothing for the other
  // calls on them.
  shmget: call(29, 194),
  semget: call(64, 190),
  msgget: call(68, 186),
  // Contexts of aio(7), of which the whole host has few: `fs.aio-max-nr`.
  io_setup: call(206, 0),
  io_destroy: call(207, 1),
  io_submit: call(209, 2),
  io_cancel: call(210, 3),
  io_getevents: call(208, 4),
  io_pgetevents: call(333, 292),
  // Events of files that calls share: who reads them, and when. Their user has few instances, for
  // all sandboxes together.
  inotify_init: call(253, undefined),
  inotify_init1: call(294, 26),
  inotify_add_watch: call(254, 27),
  inotify_rm_watch: call(255, 28),
  // The placement on nodes of memory, see numa(7). Libraries do without, as on a kernel for
  // machines that have one node.
  mbind: call(237, 235),
  set_mempolicy: call(238, 237),
  get_mempolicy: call(239, 236),
  migrate_pages: call(256, 238),
  move_pages: call(279, 239),
  set_mempolicy_home_node: everywhere(450),
};

/**
 * Calls that fit some descriptors only, so that callers read and write instead. Pages that they
 * have put into a pipe or a socket are on nobody's account, and each byte of them keeps up to two
 * mebibytes: a huge page, or a large folio of a file, also after it was unmapped or truncated.
 */
export const unfitCalls: Readonly<Record<string, SyscallNumbers>> = {
  vmsplice: call(278, 75),
  splice: call(275, 76),
  tee: call(276, 77),
  sendfile: call(40, 71),
};

/** Calls that a strict filter refuses besides: those that reach or await others by an address. */
export const networkCalls = {
  connect: call(42, 203),
  bind: call(49, 200),
  listen: call(50, 201),
} as const;

/** Calls that no tool needs, and that reach parts of the kernel with a history. */
export const refusedCalls: Readonly<Record<string, SyscallNumbers>> = {
  // Namespaces and mounts.
  unshare: call(272, 97),
  setns: call(308, 268),
  mount: call(165, 40),
  umount2: call(166, 39),
  pivot_root: call(155, 41),
  chroot: call(161, 51),
  open_tree: everywhere(428),
  move_mount: everywhere(429),
  fsopen: everywhere(430),
  fsconfig: everywhere(431),
  fsmount: everywhere(432),
  fspick: everywhere(433),
  mount_setattr: everywhere(442),
  open_tree_attr: everywhere(467),
  // Other processes.
  ptrace: call(101, 117),
  process_vm_readv: call(310, 270),
  process_vm_writev: call(311, 271),
  kcmp: call(312, 272),
  pidfd_getfd: everywhere(438),
  process_madvise: everywhere(440),
  process_mrelease: everywhere(448),
  // The placement on CPUs, which is a limit.
  sched_setaffinity: call(203, 122),
  // Large interfaces into the kernel.
  bpf: call(321, 280),
  perf_event_open: call(298, 241),
  userfaultfd: call(323, 282),
  io_uring_setup: everywhere(425),
  io_uring_enter: everywhere(426),
  io_uring_register: everywhere(427),
  fanotify_init: call(300, 262),
  fanotify_mark: call(301, 263),
  lookup_dcookie: call(212, 18),
  // Keyrings are not in any namespace: without this one call reads what another left.
  add_key: call(248, 217),
  request_key: call(249, 218),
  keyctl: call(250, 219),
  // The kernel itself.
  init_module: call(175, 105),
  finit_module: call(313, 273),
  delete_module: call(176, 106),
  kexec_load: call(246, 104),
  kexec_file_load: call(320, 294),
  reboot: call(169, 142),
  syslog: call(103, 116),
  acct: call(163, 89),
  swapon: call(167, 224),
  swapoff: call(168, 225),
  quotactl: call(179, 60),
  quotactl_fd: everywhere(443),
  settimeofday: call(164, 170),
  clock_settime: call(227, 112),
  adjtimex: call(159, 171),
  clock_adjtime: call(305, 266),
  sethostname: call(170, 161),
  setdomainname: call(171, 162),
  iopl: call(172, undefined),
  ioperm: call(173, undefined),
  modify_ldt: call(154, undefined),
  uselib: call(134, undefined),
  // Files by handle, past the mounts.
  name_to_handle_at: call(303, 264),
  open_by_handle_at: call(304, 265),
};
