/**
 * Options of the system calls that are many calls in one, as far as the filter decides by them:
 * prctl(2), seccomp(2), setsockopt(2), getsockopt(2), and the protocols of socket(2).
 *
 * From the kernel's `include/uapi/linux/prctl.h`, `seccomp.h`, `tcp.h` and `in.h`, and
 * `asm-generic/socket.h`, up to Linux 6.18.
 */

/**
 * Options of prctl(2) that a tool has: what C libraries, language runtimes and ordinary programs
 * ask for or set, and nothing that takes memory of the kernel or touches others. Every other one
 * fails as on a kernel that does not know it.
 */
export const processOptions = {
  PR_SET_PDEATHSIG: 1,
  PR_GET_PDEATHSIG: 2,
  PR_GET_DUMPABLE: 3,
  PR_GET_KEEPCAPS: 7,
  PR_SET_NAME: 15,
  PR_GET_NAME: 16,
  PR_GET_SECCOMP: 21,
  PR_CAPBSET_READ: 23,
  PR_GET_TSC: 25,
  PR_GET_SECUREBITS: 27,
  PR_SET_TIMERSLACK: 29,
  PR_GET_TIMERSLACK: 30,
  PR_SET_CHILD_SUBREAPER: 36,
  PR_GET_CHILD_SUBREAPER: 37,
  PR_SET_NO_NEW_PRIVS: 38,
  PR_GET_NO_NEW_PRIVS: 39,
  PR_GET_TID_ADDRESS: 40,
  PR_SET_THP_DISABLE: 41,
  PR_GET_THP_DISABLE: 42,
  PR_SVE_GET_VL: 51,
  PR_GET_SPECULATION_CTRL: 52,
  PR_SET_SPECULATION_CTRL: 53,
  PR_SET_TAGGED_ADDR_CTRL: 55,
  PR_GET_TAGGED_ADDR_CTRL: 56,
  PR_SME_GET_VL: 64,
  PR_SET_MDWE: 65,
  PR_GET_MDWE: 66,
  PR_GET_SHADOW_STACK_STATUS: 74,
  PR_SET_SHADOW_STACK_STATUS: 75,
  PR_LOCK_SHADOW_STACK_STATUS: 76,
  PR_GET_AUXV: 0x4155_5856,
} as const;

/**
 * Allowed with 1 only: what a process holds that is not dumpable, nobody but a privileged worker
 * can look at.
 */
export const setDumpable = { option: 4, dumpable: 1 } as const;

/**
 * What a template needs besides, to have its children give up what tools must not have, and to put
 * their filter on.
 */
export const processOptionsOfTemplates = {
  PR_SET_SECCOMP: 22,
  PR_CAPBSET_DROP: 24,
  PR_CAP_AMBIENT: 47,
} as const;

/**
 * The operation of seccomp(2) that takes a program: for those the whole host has one limit,
 * `net.core.bpf_jit_limit`.
 */
export const setModeFilter = 1;
/** Its flag SECCOMP_FILTER_FLAG_TSYNC: the program is for every thread of the process. */
export const syncThreads = 1;

/** Levels of setsockopt(2). */
const levels = { socket: 1, tcp: 6 } as const;

/** Options of one level, by name. */
interface SocketOptions {
  readonly level: number;
  readonly options: Readonly<Record<string, number>>;
}

/** Options of setsockopt(2) that fail as on a kernel without them. */
export const refusedSettings: readonly SocketOptions[] = [
  {
    level: levels.socket,
    options: {
      // Programs: with two of them for each socket the host's limit is soon used up.
      SO_ATTACH_FILTER: 26,
      SO_ATTACH_BPF: 50,
      SO_ATTACH_REUSEPORT_CBPF: 51,
      SO_ATTACH_REUSEPORT_EBPF: 52,
      // Pages that stay as long as a socket has them, each byte of them up to two mebibytes.
      SO_ZEROCOPY: 60,
      // Takes from the memory of the worker's container, and from what the host's network has,
      // without using it.
      SO_RESERVE_MEM: 73,
    },
  },
  {
    level: levels.tcp,
    options: {
      // Other protocols in place of a connection's own, such as TLS, with keys and buffers of the
      // kernel's.
      TCP_ULP: 31,
      // Keys of routers, for which the kernel loads algorithms by a name that the caller chooses.
      TCP_MD5SIG: 14,
      TCP_MD5SIG_EXT: 32,
      TCP_AO_ADD_KEY: 38,
      TCP_AO_DEL_KEY: 39,
      TCP_AO_INFO: 40,
      TCP_AO_REPAIR: 42,
    },
  },
];

/**
 * Options of getsockopt(2) that fail so: this one maps what was received, and mapped files count
 * nowhere.
 */
export const refusedQuestions: readonly SocketOptions[] = [
  { level: levels.tcp, options: { TCP_ZEROCOPY_RECEIVE: 35 } },
];

/**
 * Protocols of IPv4 and IPv6 sockets: the family's own for a kind of socket, and those that
 * programs name. Multipath TCP, UDP-Lite, SCTP and others are large, rarely used, and no program
 * does without the ones that are here.
 */
export const internetProtocols = { default: 0, ICMP: 1, TCP: 6, UDP: 17, ICMPv6: 58 } as const;
