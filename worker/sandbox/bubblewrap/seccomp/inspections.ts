/**
 * What decides the calls whose arguments count.
 */
import {
  internetProtocols,
  processOptions,
  processOptionsOfTemplates,
  refusedQuestions,
  refusedSettings,
  setDumpable,
  setModeFilter,
  syncThreads,
} from "../../syscalls/call-options.ts";
import type { inspectedCalls } from "../../syscalls/syscalls.ts";
import {
  type Instruction,
  giveBack,
  load,
  offsets,
  onAnyBit,
  onEqual,
  unlessEqual,
} from "./bpf.ts";
import { actions, allowOnly, decide, errnos, failOn, failOnAnyBit } from "./verdicts.ts";

/** Flags of clone(2) that make a namespace: mount, cgroup, uts, ipc, user, pid, net. */
const namespaceFlags = 0x7e02_0000;

/**
 * Flags of clone(2) for a thread, and for sharing descriptors and the current directory. A thread
 * shares them: what a process has open is what any of its threads has open, so that who counts need
 * look at one. A process that shares memory with another (CLONE_VM, as vfork does for a moment) is
 * counted once more, so there is nothing to hide in that.
 */
const threadFlags = {
  thread: 0x0001_0000,
  files: 0x0000_0400,
  directory: 0x0000_0200,
} as const;

/**
 * Flag of close_range(2) that gives the calling thread descriptors of its own. Callers close one
 * after the other instead.
 */
const closeRangeUnshare = 0x2;

/**
 * Flag of mmap(2) for pages of hugetlbfs, which are the host's and on no process's account. Who
 * asks has to do without.
 */
const hugePages = 0x0004_0000;

/**
 * Commands of fcntl(2) by which one sees when others open a file or read a directory, and keeps
 * them waiting: F_SETLEASE, F_NOTIFY, F_SETDELEG. They take a descriptor for reading, so a file
 * that calls share, read-only, is enough.
 */
const watchingCommands = [1024, 1026, 1040];

/**
 * Requests of ioctl_tty(2) that put input into a terminal, reach the console, or have a terminal
 * served by another driver, which the kernel loads for that: those of old modems and buses, with a
 * history.
 */
const terminalRequests = {
  TIOCSTI: 0x5412,
  TIOCLINUX: 0x541c,
  TIOCSETD: 0x5423,
} as const;

/** The usual personality, and the question which it is. Others switch protections off. */
const harmlessPersonalities = [0, 0xffff_ffff];

/**
 * Socket families with a network: local, IPv4, IPv6, and netlink, which name service and interface
 * lists need. Without a network the same ones exist in a namespace of their own. Others, such as
 * packet or vsock, are not all bound by it.
 */
const socketFamilies = { unix: 1, inet: 2, inet6: 10, netlink: 16 } as const;

/**
 * The protocol of netlink(7) that tells interfaces and addresses. The others lead into subsystems
 * that no tool needs.
 */
const netlinkRoute = 0;

/**
 * Types of sockets that talk to their peer only, with any of SOCK_NONBLOCK and SOCK_CLOEXEC: an
 * unconnected one could send to others by their address.
 */
const connectedTypes = [1, 5].flatMap((type) =>
  [0, 0x800].flatMap((blocking) => [0, 0x8_0000].map((closing) => type | blocking | closing)),
);

function allowFamilies(): readonly Instruction[] {
  return allowOnly(Object.values(socketFamilies), errnos.EAFNOSUPPORT);
}

/** Decides a socket of a family by its protocol, and goes on behind with the other families. */
function allowProtocols(family: number, protocols: readonly number[]): readonly Instruction[] {
  return [
    load(offsets.argument(0)),
    ...onEqual(family, allowOnly(protocols, errnos.EPROTONOSUPPORT, 2)),
  ];
}

/** Passes a filter for all threads, and no other way to add one. */
export function allowSyncedFilter(): readonly Instruction[] {
  return [
    load(offsets.argument(0)),
    ...onEqual(setModeFilter, allowOnly([syncThreads], errnos.EINVAL, 1)),
    giveBack(actions.allow),
  ];
}

function allowProcessOptions(allowed: Readonly<Record<string, number>>): readonly Instruction[] {
  const { option, dumpable } = setDumpable;
  const rules = [
    ...Object.values(allowed).map((number) => ({
      number,
      block: [giveBack(actions.allow)],
    })),
    { number: option, block: allowOnly([dumpable], errnos.EINVAL, 1) },
  ];
  return [load(offsets.argument(0)), ...decide(rules, actions.fail(errnos.EINVAL))];
}

/** Fails the call for options of the levels that are named, else lets it pass. */
function failOnOptions(refused: typeof refusedSettings): readonly Instruction[] {
  return [
    load(offsets.argument(1)),
    ...refused.flatMap(({ level, options }) =>
      onEqual(level, failOn(2, Object.values(options), errnos.ENOPROTOOPT)),
    ),
    giveBack(actions.allow),
  ];
}

function noNamespaceAndOneTable(): readonly Instruction[] {
  return [
    load(offsets.argument(0)),
    ...onAnyBit(namespaceFlags, [giveBack(actions.fail(errnos.EPERM))]),
    ...oneTable().slice(1),
  ];
}

function oneTable(): readonly Instruction[] {
  return [
    load(offsets.argument(0)),
    ...onAnyBit(threadFlags.thread, [
      ...onAnyBit(threadFlags.files, onAnyBit(threadFlags.directory, [giveBack(actions.allow)])),
      giveBack(actions.fail(errnos.EPERM)),
    ]),
    giveBack(actions.allow),
  ];
}

/** Of a filter that runs a tool. */
export const inspections: Readonly<Record<keyof typeof inspectedCalls, readonly Instruction[]>> = {
  clone: noNamespaceAndOneTable(),
  close_range: failOnAnyBit(2, closeRangeUnshare, errnos.ENOSYS),
  fcntl: failOn(1, watchingCommands, errnos.EINVAL),
  getsockopt: failOnOptions(refusedQuestions),
  ioctl: failOn(1, Object.values(terminalRequests), errnos.EPERM),
  mmap: failOnAnyBit(3, hugePages, errnos.ENOMEM),
  personality: allowOnly(harmlessPersonalities, errnos.EPERM),
  prctl: allowProcessOptions(processOptions),
  seccomp: failOn(0, [setModeFilter], errnos.EINVAL),
  setsockopt: failOnOptions(refusedSettings),
  socket: [
    ...allowProtocols(socketFamilies.netlink, [netlinkRoute]),
    ...allowProtocols(socketFamilies.inet, Object.values(internetProtocols)),
    ...allowProtocols(socketFamilies.inet6, Object.values(internetProtocols)),
    ...allowFamilies(),
  ],
  socketpair: allowFamilies(),
};

/** Of one that makes sandboxes. */
export const inspectionsOfTemplates: typeof inspections = {
  ...inspections,
  clone: oneTable(),
  prctl: allowProcessOptions({ ...processOptions, ...processOptionsOfTemplates }),
};

/** No socket but connected pairs. */
export const inspectionsOfStrict: Partial<typeof inspections> = {
  socket: [giveBack(actions.fail(errnos.EPERM))],
  socketpair: [
    load(offsets.argument(0)),
    ...unlessEqual(socketFamilies.unix, [giveBack(actions.fail(errnos.EPERM))]),
    ...allowOnly(connectedTypes, errnos.EPERM, 1),
  ],
};
