/**
 * The system-call filter of a sandbox: a classic BPF program for `bwrap --seccomp`. See seccomp(2).
 */
import {
  type Instruction,
  type Rule,
  encode,
  giveBack,
  load,
  offsets,
  onAnyBit,
  onAtLeast,
  onEqual,
  search,
  unlessEqual,
} from "./bpf.ts";
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
import type { SystemCallFilter } from "../../profile.ts";
import {
  type FilteredArch,
  type SyscallNumbers,
  inspectedCalls,
  networkCalls,
  refusedCalls,
  unfitCalls,
  unknownCalls,
} from "../../syscalls/syscalls.ts";

/** What the kernel does with the call: linux/seccomp.h. */
const actions = {
  allow: 0x7fff_0000,
  killProcess: 0x8000_0000,
  /** Fail with the error number in the low half. */
  fail: (errno: number) => 0x0005_0000 | errno,
} as const;

const errnos = {
  EPERM: 1,
  ENOMEM: 12,
  EINVAL: 22,
  ENOSYS: 38,
  ENOPROTOOPT: 92,
  EPROTONOSUPPORT: 93,
  EAFNOSUPPORT: 97,
} as const;

/** AUDIT_ARCH_… of linux/audit.h. */
const auditArchs: Readonly<Record<FilteredArch, number>> = { x64: 0xc000_003e, arm64: 0xc000_00b7 };

/**
 * Calls of the x32 ABI are x86-64 calls with this bit, and would pass every comparison of numbers.
 */
const x32Bit = 0x4000_0000;

/** Flags of clone(2) that make a namespace: mount, cgroup, uts, ipc, user, pid, net. */
const namespaceFlags = 0x7e02_0000;

/**
 * Flags of clone(2) for a thread, and for sharing descriptors and the current directory. A thread
 * shares them: what a process has open is what any of its threads has open, so that who counts need
 * look at one. A process that shares memory with another (CLONE_VM, as vfork does for a moment) is
 * counted once more, so there is nothing to hide in that.
 */
const threadFlags = { thread: 0x0001_0000, files: 0x0000_0400, directory: 0x0000_0200 } as const;

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
const terminalRequests = { TIOCSTI: 0x5412, TIOCLINUX: 0x541c, TIOCSETD: 0x5423 } as const;

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

/**
 * What a filter is for: what runs a tool, or what makes sandboxes for tools, each of which puts on
 * the other one besides.
 */
export type FilterUse = "tool" | "template";

/** What decides a filter beside its architecture. */
export interface FilterOptions {
  /** `tool` unless given. */
  readonly use?: FilterUse;
  /** `usual` unless given. */
  readonly systemCalls?: SystemCallFilter;
  /** Whether it passes the one operation by which a process adds a filter on all its threads. */
  readonly addsFilter?: boolean;
}

/** Calls that a template needs besides, to make its children and to place them. */
const callsOfTemplates: ReadonlySet<string> = new Set(["unshare", "mount", "sched_setaffinity"]);

/** Whether there is a filter for an architecture. */
export function isFilteredArch(arch: string): arch is FilteredArch {
  return Object.hasOwn(auditArchs, arch);
}

/**
 * The filter for an architecture, as bytes of struct sock_filter. It kills on calls of another
 * architecture, answers calls that some kernels do not have with ENOSYS and those that do not fit
 * every descriptor with EINVAL, refuses those that no tool needs with EPERM, and lets everything
 * else pass.
 */
export function seccompProgram(arch: FilteredArch, options: FilterOptions = {}): Uint8Array {
  return encode([
    load(offsets.arch),
    ...unlessEqual(auditArchs[arch], [giveBack(actions.killProcess)]),
    load(offsets.number),
    ...(arch === "x64" ? onAtLeast(x32Bit, [giveBack(actions.killProcess)]) : []),
    ...decide(rulesOf(arch, options), actions.allow),
  ]);
}

function decide(rules: readonly Rule[], otherwise: number): readonly Instruction[] {
  return search(
    rules.toSorted((a, b) => a.number - b.number),
    [giveBack(otherwise)],
  );
}

function rulesOf(
  arch: FilteredArch,
  { use = "tool", systemCalls = "usual", addsFilter = false }: FilterOptions,
): readonly Rule[] {
  const isStrict = systemCalls === "strict";
  const inspected = {
    ...(use === "template" ? inspectionsOfTemplates : inspections),
    ...(isStrict && use === "tool" ? inspectionsOfStrict : {}),
    ...(addsFilter ? { seccomp: allowSyncedFilter() } : {}),
  };
  const refused = Object.entries(refusedCalls).filter(
    ([name]) => use !== "template" || !callsOfTemplates.has(name),
  );
  const ruleOf = (numbers: SyscallNumbers, block: readonly Instruction[]): readonly Rule[] => {
    const number = numbers[arch];
    return number === undefined ? [] : [{ number, block }];
  };
  const failing = (calls: Readonly<Record<string, SyscallNumbers>>, errno: number) =>
    Object.values(calls).flatMap((numbers) => ruleOf(numbers, [giveBack(actions.fail(errno))]));
  return [
    ...Object.entries(inspected).flatMap(([name, block]) =>
      ruleOf(inspectedCalls[name as keyof typeof inspectedCalls], block),
    ),
    ...failing(unknownCalls, errnos.ENOSYS),
    ...failing(unfitCalls, errnos.EINVAL),
    ...failing(Object.fromEntries(refused), errnos.EPERM),
    ...(isStrict ? failing(strictlyRefused(use), errnos.EPERM) : []),
  ];
}

/** Children of a template connect to the worker before they put on a tool's filter. */
function strictlyRefused(use: FilterUse): Readonly<Record<string, SyscallNumbers>> {
  const { connect, ...others } = networkCalls;
  return use === "template" ? others : { connect, ...others };
}

/** Fails the call when an argument is one of `values`, else lets it pass. */
function failOn(index: number, values: readonly number[], errno: number): readonly Instruction[] {
  return [
    load(offsets.argument(index)),
    ...values.flatMap((value) => onEqual(value, [giveBack(actions.fail(errno))])),
    giveBack(actions.allow),
  ];
}

/** Fails the call when an argument has any of `bits`, else lets it pass. */
function failOnAnyBit(index: number, bits: number, errno: number): readonly Instruction[] {
  return [
    load(offsets.argument(index)),
    ...onAnyBit(bits, [giveBack(actions.fail(errno))]),
    giveBack(actions.allow),
  ];
}

/**
 * Lets the call pass when an argument, the first one unless told, is one of `values`, else fails
 * it.
 */
function allowOnly(values: readonly number[], errno: number, index = 0): readonly Instruction[] {
  return [
    load(offsets.argument(index)),
    ...values.flatMap((value) => onEqual(value, [giveBack(actions.allow)])),
    giveBack(actions.fail(errno)),
  ];
}

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
function allowSyncedFilter(): readonly Instruction[] {
  return [
    load(offsets.argument(0)),
    ...onEqual(setModeFilter, allowOnly([syncThreads], errnos.EINVAL, 1)),
    giveBack(actions.allow),
  ];
}

function allowProcessOptions(allowed: Readonly<Record<string, number>>): readonly Instruction[] {
  const { option, dumpable } = setDumpable;
  const rules = [
    ...Object.values(allowed).map((number) => ({ number, block: [giveBack(actions.allow)] })),
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

/** What decides the calls whose arguments count. */
const inspections: Readonly<Record<keyof typeof inspectedCalls, readonly Instruction[]>> = {
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

const inspectionsOfTemplates: typeof inspections = {
  ...inspections,
  clone: oneTable(),
  prctl: allowProcessOptions({ ...processOptions, ...processOptionsOfTemplates }),
};

/** No socket but connected pairs. */
const inspectionsOfStrict: Partial<typeof inspections> = {
  socket: [giveBack(actions.fail(errnos.EPERM))],
  socketpair: [
    load(offsets.argument(0)),
    ...unlessEqual(socketFamilies.unix, [giveBack(actions.fail(errnos.EPERM))]),
    ...allowOnly(connectedTypes, errnos.EPERM, 1),
  ],
};
